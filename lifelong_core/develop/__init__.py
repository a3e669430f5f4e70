"""The pipeline-learning loop; the only part of the product that may import torch, torchvision and timm.

- `torchvision_operators`: makes torchvision importable beside a CPU build of torch.
- `evaluation_transforms`: evaluation transforms of timm and torchvision as preprocessing documents.
"""
