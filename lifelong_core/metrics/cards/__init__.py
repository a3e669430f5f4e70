"""The cards of the metric pool, as data."""
