"""Methods that estimate performance from the confidence of single predictions (Li et al. 2022).

- `base`: what every method does
- `outcomes`: predictions of a calibration set, and whether they are right
- `parameters`: parameters of all predictions, or of each predicted class; base of the methods that fit them
- `average`: AC
- `temperature`: TS, CS-TS
- `vector_scaling`: VS
- `normalised`: NORCAL
- `difference`: DoC, CS-DoC
- `thresholds`: ATC, TS-ATC, CS-ATC, CS-TS-ATC
- `registry`: all methods by name
"""
