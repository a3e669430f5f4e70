"""Augmentation policies: applied to images, and searched for a task.

- `transform`: each operation of a policy on images; random crop, then one sub-policy for each image; random
  sub-policies that a search tries.
- `search`: the policy that suits a task, by density matching.
- `halving`: scores of a search, and its state for a resumption.
"""
