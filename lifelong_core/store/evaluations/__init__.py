"""Evaluations of models on labelled sets, and the gate that every promotion passes.

- `evaluations`: stores and finds them
- `validations`, `comparisons`: submit the validation of a model, and the comparison of two
- `acceptance`: promotes nothing that misses the acceptance thresholds of its task
"""
