"""When cycles run.

- `tick`: one round over the populations, or one look for news
- `agenda`: the populations that a tick visits; predictions that no cycle has judged
- `tick_state`, `housekeeping`: state between ticks; tasks of a tick beside the cycles
"""
