"""When cycles run.

- `occasion`: why and when a cycle is due: by the clock, early, or on request
- `tick`: one round over the populations, or one look for news; `agenda` says which populations it visits
- `new_predictions`, `visits`: predictions that no cycle has judged; the newest visit of each population
- `registry_reader`, `cycle_log`, `housekeeping`: the registry of a tick, its log lines, its tasks beside the cycles
- `lease`: one monitor at a time
"""
