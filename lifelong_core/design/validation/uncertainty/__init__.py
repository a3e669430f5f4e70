"""Uncertainty-aware scores of a binary task (Sperling et al.), with intervals.

- `settings`: sigma, damping, threshold and the kind of the uncertainties
- `predicted`: checked uncertainties, given or as the spread over members
- `scores`: the scores over all settings; `document`: their form in a result
"""
