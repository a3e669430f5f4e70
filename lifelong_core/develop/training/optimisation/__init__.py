"""Finds the weights of a classifier by stochastic gradient descent.

- `classifier`: the device; the timm model of a recipe, its initial weights, and the second head of co-training.
- `batches`: which cases come in which batch; their preparation in threads.
- `losses`: validation loss and metric; range test for the learning rate at the start.
- `state`: everything that an interrupted training needs to go on.
- `trainer`: the epochs of one phase.
"""
