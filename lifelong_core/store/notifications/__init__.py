"""Notifications: what people should know, written in the transaction of the event, and delivered by a monitor.

- `outbox`: the repository; deliveries and their retries
- `events`: which results of cycles, jobs and validations are notifications
"""
