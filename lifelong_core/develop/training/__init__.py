"""Training of a classifier, alone or with what is transferred from another task (thesis, sections 5.1.3 and 6.1.4).

Free of torch, so that every process may import them:

- `recipe`: how to train, and an augmentation policy, as values.
- `from_suggestion`: the recipe that follows a suggestion of the knowledge base.
- `plan`: steps, duration and needs of a training before it starts.
- `progress`: how far a training is, by its steps.
- `result`: the result of a training, and of a search for an augmentation policy.

With torch and timm, for jobs only:

- `run`: from recipe and images to a checked model; `phases`: pretraining and training.
- `data`: images, their splits and leaks; `augmentation`: applies and searches policies.
- `optimisation`: finds the weights; `export`: the ONNX graph and its parity.
"""
