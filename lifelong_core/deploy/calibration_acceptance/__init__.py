"""Acceptance of a calibration set: whether the head fitted on it is good enough to publish.

- `report`: the figures and the verdict
- `findings`: reasons to refuse, and warnings
- `class_mix_mean`: means under a class mix, with intervals
- `wrong_labels`: labels that fit another class better, and random label noise
"""
