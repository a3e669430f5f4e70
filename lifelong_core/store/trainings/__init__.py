"""Trainings: how the models that were trained here came about.

- `records`: one training as a value
- `trainings`: registers a trained model with its training, and finds them
"""
