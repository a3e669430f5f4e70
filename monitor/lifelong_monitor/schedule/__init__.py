"""When cycles run.

- `trigger`: by the clock, at multiples of the interval
- `tick`, `agenda`: one round over the populations; which ones it visits
- `new_predictions`, `visits`: what is new since the last visit
- `lease`: one monitor at a time
"""
