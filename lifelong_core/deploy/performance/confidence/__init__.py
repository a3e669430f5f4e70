"""Methods that estimate performance from the confidence of single predictions (Li et al. 2022).

- `base`: the interface, predictions of a calibration set, parameters of predictions
- `scaling`: AC, TS, CS-TS, VS
- `thresholds`: ATC, TS-ATC, CS-ATC, CS-TS-ATC
- `registry`: NORCAL, DoC, CS-DoC; all methods by name
"""
