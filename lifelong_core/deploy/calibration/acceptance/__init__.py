"""Is a calibration set good enough to publish a head that is fitted on it?

- `report`: the figures and the verdict
- `findings`: reasons to refuse, and warnings
- `class_mix_mean`: means under a class mix, with intervals
- `exchanged_labels`: labels that fit another class better
"""
