"""Finds the weights: model, learning rate, sampling, schedule, checkpoints; one phase or two, one task or two."""
