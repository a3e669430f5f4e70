"""Notifications: what happened, in words, on the channels of the settings.

- `delivery`: the thread that delivers what is due, and its metrics
- `words`: titles and texts
- `webhook`, `services`: how the channels send
"""
