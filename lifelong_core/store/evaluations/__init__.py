"""Evaluations of models on labelled sets, and the gate that every promotion passes.

- `records`: one evaluation as a value
- `evaluations`: stores and finds them
- `comparisons`: submits the comparison of two models
- `acceptance`: promotes nothing that misses the acceptance thresholds of its task
"""
