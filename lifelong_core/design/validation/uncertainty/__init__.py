"""Uncertainty-aware scores of a binary task (Sperling et al.), with intervals.

- `document`: settings, the scores as a part of a result, and checked uncertainties, given or as the spread over
  members
- `scores`: the scores over all settings
"""
