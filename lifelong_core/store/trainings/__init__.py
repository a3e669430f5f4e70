"""Trainings: how models were trained here.

- `asking`: from the request for a retraining to the payload of its job, and to its plan
- `trainings`: registers a trained model with its training, and finds them
"""
