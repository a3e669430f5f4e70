"""Cycles and the swaps that they publish.

- `cycles`, `swaps`: what each cycle found; published heads
- `watching`: what a monitor asks about all populations at once
- `affected_decisions`, `affected_periods`, `affected_ranking`, `affected_documents`: decisions that a swap changes
- `history_documents`: cycles and audit entries as JSON
"""
