"""Checks an ONNX graph in a process of its own, before it is stored and before it is promoted.

The process (`python -m lifelong_service.check_graph`) reads what a client sent. It alone imports `onnx`, it has a time
limit, and it returns the very bytes that it has run: those are stored.
"""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lifelong_core.errors import (
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    LifelongError,
    PayloadTooLargeError,
)
from lifelong_core.preprocessing import Preprocessing
from lifelong_core.settings import Settings
from lifelong_core.store import Model, Serving, Store, serving_of

CHECK_SECONDS = 300.0
"""Time limit of a check that a command makes; a request to the service has less."""
PROTOBUF_BYTES = 2**31 - 1
"""No ONNX file is larger: its format, protobuf, ends there."""
_LONGEST_REPORT = 300
_ERRORS = (ConfigurationError, InvalidInputError, PayloadTooLargeError)


@dataclass(frozen=True)
class CheckedGraph:
    """A graph that ONNX Runtime has loaded and run.

    Attributes:
        content: one self-contained ONNX file, the bytes that were run.
        provider: the execution provider that ran it.
    """

    content: bytes
    provider: str


def check_graph(
    graph: Path,
    preprocessing: Preprocessing,
    *,
    classes: int,
    settings: Settings,
    external_data: Path | None = None,
    timeout_seconds: float = CHECK_SECONDS,
    option: str | None = None,
) -> CheckedGraph:
    """Make one self-contained file of a graph, and load and run it as a serving worker does.

    Args:
        graph: the ONNX file.
        preprocessing: what happens to an image before the graph.
        classes: number of classes of the task.
        settings: give the execution providers, the threads and `maximum_model_bytes`.
        external_data: the folder whose files the graph may refer to for its weights; None: it may refer to none.
        timeout_seconds: the process is killed after this time.
        option: what an error names when the graph is at fault, in place of the fields `onnx` and `external_data`.

    Raises:
        InvalidInputError: the graph cannot be used, or did not load and run in time.
        ConfigurationError: an execution provider of the settings, or ONNX Runtime, is not there.
    """
    with tempfile.TemporaryDirectory(prefix="lifelong-check-") as folder:
        output = Path(folder) / "graph.onnx"
        request = {
            "graph": str(graph.resolve()),
            "external_data": None if external_data is None else str(external_data.resolve()),
            "output": str(output),
            "preprocessing": preprocessing.model_dump(mode="json"),
            "classes": classes,
            "maximum_bytes": min(settings.maximum_model_bytes, PROTOBUF_BYTES),
            "execution_providers": list(settings.execution_providers),
            "threads": settings.intra_op_threads,
        }
        answer = _ask(request, folder, timeout_seconds, option)
        return CheckedGraph(output.read_bytes(), answer["provider"])


def check_servable(store: Store, settings: Settings, reference: str, *, patience_seconds: float) -> None:
    """Make sure that a model can be served before its task relies on it.

    The living workers decide; they get some time to load it. Where none lives, the stored graph is checked here. A
    model without a head is let pass: no worker loads it, and it cannot be promoted.

    Args:
        store: where the model is.
        settings: of the check.
        reference: the model.
        patience_seconds: how long to wait for the workers.

    Raises:
        NotFoundError: there is no such model.
        ConflictError: a worker cannot load the model, or has not loaded it in time.
    """
    serving = serving_of(store, reference, patience_seconds=patience_seconds)
    if serving.head_version is None or serving.model.kind == "external":
        return
    if serving.failures or serving.workers:
        _check_workers(serving, patience_seconds)
        return
    check_stored_graph(store, settings, serving.model, classes=len(serving.task.class_names))


def check_stored_graph(store: Store, settings: Settings, model: Model, *, classes: int) -> None:
    """Check the stored graph of a model in a process of its own.

    Raises:
        ConflictError: it cannot be loaded or run.
    """
    if model.artifact is None or model.preprocessing is None:
        return
    try:
        graph = store.artifacts.path(model.artifact)
        check_graph(graph, model.preprocessing, classes=classes, settings=settings)
    except LifelongError as error:
        raise cannot_be_loaded(model, error) from error


def cannot_be_loaded(model: Model, error: LifelongError) -> ConflictError:
    """The refusal to rely on a model whose graph cannot be loaded."""
    return ConflictError(
        f"the model {model.reference} cannot be loaded: {error.message}",
        field="model",
        mend=error.mend or "Add a version that can be loaded.",
    )


def _check_workers(serving: Serving, patience_seconds: float) -> None:
    reference, workers = serving.model.reference, len(serving.workers)
    if serving.failures:
        worker, reason = next(iter(serving.failures.items()))
        raise ConflictError(
            f"{len(serving.failures)} of {workers} workers cannot load the model {reference}"
            f" (worker {worker}: {reason.rstrip('.')}).",
            field="model",
            mend="Add a version that can be loaded; `lifelong doctor` says more.",
        )
    if not serving.is_settled:
        raise ConflictError(
            f"{workers - len(serving.ready)} of {workers} workers have not loaded the model {reference} within"
            f" {patience_seconds:g} s.",
            field="model",
            mend="Try again when `lifelong heads workers` lists it for every worker.",
        )


def _ask(request: dict[str, Any], folder: str, timeout_seconds: float, option: str | None) -> dict[str, Any]:
    """The answer of the checking process."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "lifelong_service.check_graph"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_seconds,
            cwd=folder,
            # A bento finds its packages by the path of the process that started it.
            env=os.environ | {"PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)},
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidInputError(
            f"the graph was not loaded and run within {timeout_seconds:g} s.",
            field=option or "onnx",
            mend="Add it on the command line, which waits longer, or export a smaller graph.",
        ) from error
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        raise InvalidInputError(
            f"the check of the graph ended with status {done.returncode}: {done.stderr.strip()[-_LONGEST_REPORT:]}",
            field=option or "onnx",
            mend="Is the extra cpu or gpu installed, and is there memory for the model?",
        ) from None
    if done.returncode == 0:
        return answer
    kind = next((kind for kind in _ERRORS if kind.code == answer["code"]), InvalidInputError)
    is_about_graph = answer["field"] in ("onnx", "external_data")
    raise kind(
        answer["message"],
        field=option if option and is_about_graph else answer["field"],
        mend=answer["mend"],
    )
