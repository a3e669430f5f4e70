"""Makes torchvision, and so timm, importable beside a CPU build of torch.

A torchvision wheel for CUDA cannot load its compiled operators with a CPU build of torch. Its Python code still
registers shapes for two of them, and the import fails with "operator torchvision::nms does not exist". The import
succeeds if the two schemas are declared first. The operators (non-maximum suppression, for detection) have no
implementation then; classifiers and transforms do not use them.
"""

from importlib import import_module
from typing import Any

_OPERATORS = ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_MISSING = "operator torchvision::nms does not exist"

_declarations: list[Any] = []
"""torch removes a declaration together with its library object, so the object is kept."""


def declare_missing_operators() -> bool:
    """Import torchvision; if its operators are missing, declare them and import it again.

    Returns:
        Whether the declarations were needed.

    Raises:
        ImportError: torch or torchvision is not installed.
    """
    try:
        import_module("torchvision")
    except RuntimeError as error:
        if _MISSING not in str(error):
            raise
    else:
        return False
    library: Any = import_module("torch.library").Library("torchvision", "FRAGMENT")
    for name in _OPERATORS:
        library.define(name + _SCHEMA)
    _declarations.append(library)
    import_module("torchvision")
    return True
