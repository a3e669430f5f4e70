"""Labels of a window's predictions: which to ask for, and performance from few of them.

- `planning`: which predictions to label: inclusion probabilities, the draw, the width of the resulting interval
- `difference`: label-free prediction of all samples, corrected by the labelled ones; combined with the label-free
  estimate where its assumption holds
- `estimate`: the estimate with its intervals
- `weighted`: labelled samples alone: inclusion probabilities, groups, wrong labels
- `agreement`: estimated against realised metrics
- `selection`: do labelled and unlabelled samples differ?
- `calibration_drift`: are the served probabilities still calibrated? Posteriors recalibrated on few labels
- `prevalence_evidence`: prevalence from unlabelled samples and labels
"""
