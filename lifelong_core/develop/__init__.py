"""The pipeline-learning loop (thesis, chapter 5); the only part of the product that may import torch and timm.

- `fingerprints`: task fingerprints and the distances between them; numpy only.
- `features`: features of images by a timm model; needs torch.
- `knowledge`: task cards, trainings and measured transfers of other tasks.
- `ranking`: suggestions of what to transfer from which task.
- `training`: trains a classifier by a recipe; needs torch.
- `localization`: whether two models look at the same places of images.
- `transferability`: how good a ranking of source tasks was.
- `evaluation_transforms`: evaluation transforms of timm and torchvision as preprocessing documents; makes
  torchvision importable beside a CPU build of torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lifelong_core.develop.features.task import fingerprint_task
    from lifelong_core.develop.fingerprints.distances.registry import distance
    from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
    from lifelong_core.develop.ranking.rank_sources import rank_sources

__all__ = ["KnowledgeBase", "distance", "fingerprint_task", "rank_sources"]

_MODULES = {
    "KnowledgeBase": "lifelong_core.develop.knowledge.knowledge_base",
    "distance": "lifelong_core.develop.fingerprints.distances.registry",
    "fingerprint_task": "lifelong_core.develop.features.task",
    "rank_sources": "lifelong_core.develop.ranking.rank_sources",
}
"""By exported name; a module is imported on first use, because some need torch."""


def __getattr__(name: str) -> Any:
    """Import an exported name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
