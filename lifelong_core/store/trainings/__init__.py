"""Trainings: how the models that were trained here came about.

- `asking`: from what a person asks for to the payload of a job, and to its plan
- `trainings`: registers a trained model with its training, and finds them
"""
