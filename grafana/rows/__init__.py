"""The rows of the dashboard, one module each; `build_panels` returns the panels of the row.

- `state`, `prevalence`, `evidence`, `cycles`, `estimated`, `decision_rule`, `realised`: the population that is chosen
  on the dashboard
- `traffic`, `prediction_log`, `jobs`: the processes
"""
