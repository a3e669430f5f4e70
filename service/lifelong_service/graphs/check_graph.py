"""`python -m lifelong_service.graphs.check_graph`: check whether a worker accepts a graph.

The request comes as one JSON document on standard input, see `lifelong_core.runtime.graph_check`; the last line of
standard output is the answer. Exit status 0: the graph was loaded and run, and `output` holds it as one self-contained
file; 2: it is refused, and the answer is the error.

Before it opens the graph, the process drops rights that a check does not need: sockets, other programs and processes,
large files, and memory and processor time beyond the limits for a graph of this size.
"""

import json
import math
import resource
import sys
from pathlib import Path
from typing import Any

import onnx

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.values.errors import InvalidInputError, LifelongError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service import confinement
from lifelong_service.graphs.classifier import Classifier
from lifelong_service.graphs.half_precision import largest_difference, to_half_precision
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.providers import CPU, choose_providers, refuse
from lifelong_service.graphs.rules import check_image_is_used
from lifelong_service.graphs.self_contained import self_contained
from lifelong_service.graphs.trial import check_answers_differ

_COPIES = 4
"""Copies of the graph in memory at once: the file, the parsed document, the weights, and the rearranged weights."""
_FILES = 64


def main() -> int:
    """Read the request, check the graph, and write the answer."""
    request = json.load(sys.stdin)
    try:
        # Before the limits: the driver of a GPU starts programs of its own.
        choice = choose_providers(request["execution_providers"], device=request["gpu"]["device"])
        unconfined = _confine(request, on_processor=choice.names == (CPU,))
        answer = _load(request)
    except MemoryError:
        return _refuse(
            InvalidInputError(
                "loading the graph takes more memory than it may.",
                field="onnx",
                hint="If you trust the file, raise LIFELONG_MAXIMUM_GRAPH_MEMORY_BYTES.",
            )
        )
    except LifelongError as error:
        return _refuse(error)
    print(json.dumps(answer | {"unconfined": unconfined}))  # noqa: T201
    return 0


def _refuse(error: LifelongError) -> int:
    # The trial images are valid, so an error about them is a fault of the graph.
    if error.field in ("image", "model"):
        error.field = "onnx"
    return refuse(error)


def _confine(request: dict[str, Any], *, on_processor: bool) -> list[str]:
    """Set the limits; return the messages of those that failed.

    Drivers of accelerators map more addresses than the machine has memory, and start threads: both are then not
    limited.
    """
    confinement.end_with_parent()
    problem = confinement.refuse_calls()
    seconds = math.ceil(request["seconds"])
    confinement.limit(resource.RLIMIT_CPU, seconds if on_processor else 4 * seconds)
    confinement.limit(resource.RLIMIT_FSIZE, request["maximum_bytes"])
    confinement.limit(resource.RLIMIT_CORE, 0)
    if on_processor:
        confinement.limit(resource.RLIMIT_NOFILE, _FILES)
        confinement.limit(resource.RLIMIT_NPROC, 0)
        confinement.lift(resource.RLIMIT_DATA)  # that of a worker
        confinement.limit_memory(request["memory"] + _COPIES * _size(request))
    return [] if problem is None else [f"sockets and programs are not refused: {problem}"]


def _size(request: dict[str, Any]) -> int:
    """Return the bytes of the graph and of the acceptable files that it may refer to."""
    files = [Path(request["graph"])]
    if request["external_data"] is not None:
        files += [file for file in Path(request["external_data"]).iterdir() if file != files[0]]
    return min(request["maximum_bytes"], sum(file.stat().st_size for file in files if file.is_file()))


def _load(request: dict[str, Any]) -> dict[str, Any]:
    """Write the self-contained graph to `output` and run that file, in a separate folder."""
    folder = request["external_data"]
    output = Path(request["output"])
    content = self_contained(
        Path(request["graph"]),
        None if folder is None else Path(folder),
        maximum_bytes=request["maximum_bytes"],
        permitted=request["permitted_operators"],
        private=[Path(path) for path in request["private"]],
    )
    is_half = request["precision"] == "half"
    output.write_bytes(to_half_precision(content) if is_half else content)
    classifier = _classifier(output, request)
    check_image_is_used(onnx.ModelProto.FromString(content))
    check_answers_differ(classifier)
    if not is_half:
        return {"provider": classifier.provider, "half_difference": None}
    # On the CPU: a second graph on the GPU may exceed its share of the memory.
    original = _classifier(content, request | {"execution_providers": [CPU]})
    difference = largest_difference(
        original, classifier, Preprocessing.model_validate(request["preprocessing"])
    )
    return {"provider": classifier.provider, "half_difference": difference}


def _classifier(graph: Path | bytes, request: dict[str, Any]) -> Classifier:
    return load_classifier(
        graph,
        Preprocessing.model_validate(request["preprocessing"]),
        classes=request["classes"],
        providers=request["execution_providers"],
        threads=1,
        gpu=GpuUse(**request["gpu"]),
    )


if __name__ == "__main__":
    sys.exit(main())
