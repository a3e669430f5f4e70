"""Cycles and the swaps that they publish.

- `cycles`, `affected_counts`: results of cycles; published heads with the counts of affected decisions
- `records`, `rows`: their value types, and those from rows
- `watching`: queries of a monitor over all populations
- `affected_decisions`, `affected_periods`, `affected_ranking`: decisions that a swap changes
- `documents`: cycles, audit entries and affected decisions as JSON
"""
