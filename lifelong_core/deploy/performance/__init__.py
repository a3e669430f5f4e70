"""How good a head's decisions are now: without labels, and with few.

- `estimate_performance`: all methods behind one function; `judge_head` for several heads of one window
- `performance_estimate`: the estimate with its intervals, assumptions and warnings; names of the methods
- `by_prevalence`: estimates from the estimated prevalence, by `posteriors`, by rates, or by the mean of both
- `unlabelled_window`: the window that the heads share, and the match of its logit scale
- `confidence`, `by_confidence`: methods that use the confidence of single predictions (Li et al. 2022)
- `choice`: the choice of the method, by simulation on the calibration set
- `derived_metrics`, `ranking`, `effects`: metrics with first-order effects of samples, and intervals
- `warnings`: limits of an estimate
- `acceptance`: does an estimate reach its threshold?
- `labelled`: which predictions to label, and performance from few labels
- `segmentation`: Dice of a segmentation model without labels
"""
