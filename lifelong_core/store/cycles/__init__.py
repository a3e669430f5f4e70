"""Cycles and the swaps that they publish.

- `cycles`, `rows`: results of cycles, and cycles from rows
- `swaps`: published heads with the counts of affected decisions
- `judged_predictions`: the cycles that used a prediction
- `watching`: queries of a monitor over all populations
- `affected_decisions`, `affected_ranking`: decisions that a swap changes
"""
