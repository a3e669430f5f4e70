"""Cycles and the swaps that they publish.

- `cycles`, `rows`: results of cycles, and cycles from rows
- `swaps`: published heads with the counts of affected decisions
- `judged_predictions`: the cycles that used a prediction
- `watching`: queries of a monitor over all populations
- `populations`, `overview`: the newest cycles without their reports, and what each population needs, in words
- `periods`: a population in a period: effects, policies, declined changes, decisions
- `statements`: a cycle in words
- `affected_decisions`, `affected_ranking`: decisions that a swap changes
"""
