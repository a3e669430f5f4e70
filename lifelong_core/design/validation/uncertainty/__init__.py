"""Uncertainty-aware scores of a binary task (Sperling et al.), with intervals.

- `document`: settings, and the scores as a part of a result
- `predicted`: checked uncertainties, given or as the spread over members
- `scores`: the scores over all settings
"""
