"""Commands about tasks, models, calibration sets and heads."""
