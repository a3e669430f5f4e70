"""The pipeline-learning loop (thesis, chapter 5); the only part of the product that may import torch and timm.

- `fingerprints`: task fingerprints and the distances between them; numpy only.
- `features`: features of images by a timm model; needs torch.
- `knowledge`: task cards, trainings and measured transfers of other tasks.
- `ranking`: suggestions of what to transfer from which task.
- `transferability`: how good a ranking of source tasks was.
- `evaluation_transforms`: evaluation transforms of timm and torchvision as preprocessing documents.
- `torchvision_operators`: makes torchvision importable beside a CPU build of torch.
"""
