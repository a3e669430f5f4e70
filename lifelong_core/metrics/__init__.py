"""Metric pool: pure functions over confusion matrices and probabilities."""

from lifelong_core.metrics.confusion import accuracy, confusion_matrix
from lifelong_core.metrics.cost import expected_cost

__all__ = ["accuracy", "confusion_matrix", "expected_cost"]
