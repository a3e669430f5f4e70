"""Augmentation policies: applied to images, and searched for a task.

- `operations`: each operation of a policy on images.
- `transform`: random crop, then one sub-policy for each image.
- `search`: the policy that suits a task, by density matching.
- `candidates`, `halving`, `search_state`: what it tries; how it scores; what it needs to go on after an interruption.
"""
