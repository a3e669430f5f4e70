"""How good a head's decisions are now: without labels, and with few.

- `estimate_performance`: the methods behind one function; `judge_head` for several heads of one window
- `estimate`: the estimate with its intervals, assumptions and warnings
- `by_prevalence`: estimates from the estimated prevalence: `posteriors`, `rates`, their mean after a `scale_match`
- `confidence`, `by_confidence`: methods that use the confidence of single predictions (Li et al. 2022)
- `choice`: which method, by simulation on the calibration set
- `methods`, `requested_metrics`, `warnings`: names and meanings
- `window`, `unlabelled_window`: the window and what all methods share
- `acceptance`: does an estimated metric reach its acceptance threshold?
- `labelled`: which predictions to label, and performance from few labels
- `derived_metrics`, `ranking`, `effects`: metrics with first-order effects of samples, and intervals
- `segmentation`: Dice of a segmentation model without labels
"""
