"""Messages of ONNX Runtime's exceptions, without shapes and values of the graph."""

import re
from typing import Final

_STATUS = re.compile(r"\[ONNXRuntimeError\] : \d+ : ([A-Z_]{1,40})")
_OPERATOR = re.compile(
    r"(?:while running |No Op registered for |implementation for |Op \()([A-Za-z][A-Za-z0-9]{0,39})\b"
)
_MEANINGS: Final = {
    "INVALID_PROTOBUF": "this is not an ONNX file",
    "INVALID_GRAPH": "the graph is not valid, or of an opset that this version does not know",
    "NO_SUCHFILE": "there is no such file",
    "NOT_IMPLEMENTED": "an operator is not implemented for its types",
    "INVALID_ARGUMENT": "an operator was given what it cannot take",
}
_MEMORY: Final = (
    "ALLOC_FAILED",
    "bad_alloc",
    "bad allocation",
    "allocate memory",
    "exceeds maximum",
    "out of memory",
    "smaller than requested bytes",
)
_MORE_MEMORY: Final = (
    "Raise LIFELONG_MAXIMUM_WORKER_MEMORY_BYTES or LIFELONG_MAXIMUM_GRAPH_MEMORY_BYTES (on a GPU"
    " LIFELONG_GPU_MEMORY_BYTES), or set fewer LIFELONG_WORKERS. Smaller images take less."
)
"""What to do when memory is missing."""
_DEVICE = re.compile(r"\b(?:CUDA|CUDNN|CUBLAS) failure -?\d+: [^;\n]{1,120}")


def device_failure(error: Exception) -> str | None:
    """Return what CUDA says when a GPU cannot be used at all; None: the failure is another one, or memory is full."""
    text = str(error)
    found = _DEVICE.search(text)
    return None if found is None or lacks_memory(error) else found[0].strip()


def lacks_memory(error: Exception) -> bool:
    """Whether a failure is one of memory, of the host or of the device."""
    return isinstance(error, MemoryError) or any(sign in str(error) for sign in _MEMORY)


def hint_for(error: Exception, otherwise: str) -> str:
    """Return how to get more memory where it is missing, else the other hint."""
    return _MORE_MEMORY if lacks_memory(error) else otherwise


def describe_failure(error: Exception) -> str:
    """Return the kind of a failure and the type of the failed operator, if ONNX Runtime names them.

    Its own text is not repeated: it shows shapes, and with them the content of weights.
    """
    text = str(error)
    status, operator = _STATUS.search(text), _OPERATOR.search(text)
    code = status[1] if status else type(error).__name__
    meaning = (
        "it takes more memory than there is" if lacks_memory(error) else _MEANINGS.get(code, "it failed")
    )
    return f"{meaning} ({code}{f' in {operator[1]}' if operator else ''})."
