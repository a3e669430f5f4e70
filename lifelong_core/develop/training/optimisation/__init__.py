"""Finds the weights of a classifier by stochastic gradient descent.

- `classifier`: the timm model of a recipe, its initial weights, and the second head of co-training.
- `batches`: which cases come in which batch; their preparation in threads.
- `learning_rate`: range test for the learning rate at the start.
- `losses`: validation loss and metric.
- `state`: everything that an interrupted training needs to go on.
- `trainer`: the epochs of one phase.
"""
