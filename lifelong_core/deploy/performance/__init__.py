"""How good a head is now: performance of its decisions in a window without labels, and with few.

- `estimate`: the estimate with its intervals, assumptions and warnings
- `derived_metrics`: metrics of an estimated confusion matrix, with intervals
- `labelled`: which predictions to label, and performance from few labels
- `confidence`: methods that use the confidence of single predictions
"""
