"""Checks an ONNX graph in a process of its own, before it is stored and before it is promoted.

The process (`python -m lifelong_service.graphs.check_graph`) reads the files of a client. Only this process imports
`onnx`. It has limits on time and memory, no network, no secrets in its environment and an empty working folder. It
returns the bytes that it has run; exactly these are stored.
"""

import contextlib
import hashlib
import json
import logging
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.configuration.serving_plan import serving_plan
from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Model, ServingState, Store, check_name, serving_state
from lifelong_core.values.errors import (
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    LifelongError,
    PayloadTooLargeError,
)
from lifelong_core.values.preprocessing import Preprocessing

Precision: TypeAlias = Literal["graph", "half"]
"""Precision in which a graph computes: its own, or float16."""

CHECK_SECONDS = 300.0
"""Time limit of a check from the command line; a request to the service has less."""
PROVIDERS_SECONDS = 60.0
"""Time limit of the check of the execution providers."""
PROTOBUF_BYTES = 2**31 - 1
"""Largest ONNX file in bytes: the limit of protobuf, its format."""
_LONGEST_ANSWER = 65_536
_LONGEST_REASON = 500
_VARIABLES = ("LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "PYTHONHOME")
_VARIABLE_KINDS = ("CUDA_", "NVIDIA_", "ORT_")
"""Environment variables for ONNX Runtime and its drivers; all others, secrets included, are removed."""
_ERRORS = (ConfigurationError, InvalidInputError, PayloadTooLargeError)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class CheckedGraph:
    """A graph that ONNX Runtime has loaded and run.

    Attributes:
        content: bytes of the self-contained ONNX file that was run.
        provider: the execution provider of the run.
        half_difference: largest absolute difference of a logit, over images of random colours, that the conversion to
            half precision made; None: the graph was not converted.
    """

    content: bytes
    provider: str
    half_difference: float | None = None


@dataclass(frozen=True)
class UsableProviders:
    """The execution providers of a service on this host.

    Attributes:
        names: in order of preference.
        unused_gpu: why the CPU is used although CUDA is installed; None: there is nothing to tell.
    """

    names: tuple[str, ...]
    unused_gpu: str | None = None


def check_graph(
    graph: Path,
    preprocessing: Preprocessing,
    *,
    classes: int,
    settings: Settings,
    external_data: Path | None = None,
    timeout_seconds: float = CHECK_SECONDS,
    option: str | None = None,
    precision: Precision = "graph",
) -> CheckedGraph:
    """Convert a graph to one self-contained file, and load and run it as a serving worker does.

    Args:
        graph: the ONNX file.
        preprocessing: steps from an image to the input of the graph.
        classes: number of classes of the task.
        settings: the execution providers, the limits, and the files that are not weights.
        external_data: folder of files that the graph may use as weights; None: no external weights.
        timeout_seconds: the process is killed after this time.
        option: the field of errors on the graph, instead of `onnx` and `external_data`.
        precision: half: convert the graph to half precision; the converted one is run and returned.

    Raises:
        InvalidInputError: the graph is unusable, or did not load and run in time.
        ConfigurationError: an execution provider of the settings, or ONNX Runtime, is not installed.
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
            "gpu": GpuUse.from_settings(settings, workers=serving_plan(settings).workers).to_document(),
            "precision": precision,
            "permitted_operators": list(settings.permitted_operators),
            "private": [str(path) for path in _private_paths(settings, graph.resolve())],
            "seconds": timeout_seconds,
            "memory": settings.maximum_graph_memory_bytes,
        }
        answer = _ask(request, folder, timeout_seconds, option)
        for problem in answer["unconfined"]:
            logger.warning("the check of a graph is not confined", extra={"details": {"reason": problem}})
        return CheckedGraph(output.read_bytes(), answer["provider"], answer["half_difference"])


def check_new_graph(
    store: Store, graph: Path, name: str, task: str, *, actor: str, **options: Any
) -> CheckedGraph:
    """Check the graph of a new model; the audit log records a refusal.

    Args:
        store: the store of the task and the audit log.
        graph: the ONNX file.
        name: of the new model.
        task: of the new model.
        actor: name for the audit log.
        options: of `check_graph`, except the number of classes.

    Raises:
        InvalidInputError: the name is illegal, or the graph is unusable.
        NotFoundError: there is no such task.
        ConfigurationError: as `check_graph`.
    """
    check_name(name, field="name")
    classes = len(store.tasks.get(task).class_names)
    try:
        return check_graph(graph, classes=classes, **options)
    except InvalidInputError as error:
        with graph.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        details = {
            "task": task,
            "size": graph.stat().st_size,
            "digest": digest,
            "reason": error.message[:_LONGEST_REASON],
        }
        store.models.note_refusal(name, details, actor=actor)
        error.is_audited = True
        raise


def check_servable(
    store: Store,
    settings: Settings,
    reference: str,
    *,
    patience_seconds: float,
    may_be_released: bool = False,
) -> None:
    """Make sure that a model can be served, before its promotion or trial.

    This waits for the living workers to load it. Without living workers, it checks the stored graph on this host. A
    model without a head passes: no worker loads it, and it cannot be promoted.

    Args:
        store: the store of the model.
        settings: of the check.
        reference: the model.
        patience_seconds: longest wait for the workers.
        may_be_released: whether a model passes whose graph the workers have released, because it was promoted earlier;
            they load it again for a shadow.

    Raises:
        NotFoundError: there is no such model.
        ConflictError: a worker cannot load the model, or has not loaded it in time; or its graph is released.
    """
    if _is_released(store, reference):
        if may_be_released:
            return
        _refuse_released(store, reference)
    serving = serving_state(store, reference, patience_seconds=patience_seconds)
    if serving.head_version is None or serving.model.kind == "external":
        return
    if serving.failures or serving.workers:
        _check_workers(serving, patience_seconds)
        return
    check_stored_graph(store, settings, serving.model, classes=len(serving.task.class_names))


def _is_released(store: Store, reference: str) -> bool:
    registry = store.registry()
    return registry.resolve_model(reference).id in registry.released


def _refuse_released(store: Store, reference: str) -> None:
    """Refuse a released model if there are workers: they would have to load it before they answer with it."""
    if any(not worker.is_lost for worker in store.workers.list()):
        raise ConflictError(
            f"{reference} was promoted earlier, and the workers have released its graph.",
            field="model",
            hint=f"Let them load it first: `lifelong models shadow {reference}`.",
        )


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
    """The error that the graph of a model cannot be loaded."""
    return ConflictError(
        f"the model {model.reference} cannot be loaded: {error.message}",
        field="model",
        hint=error.hint or "Add a version that can be loaded.",
    )


def _check_workers(serving: ServingState, patience_seconds: float) -> None:
    reference, workers = serving.model.reference, len(serving.workers)
    if serving.failures:
        worker, reason = next(iter(serving.failures.items()))
        raise ConflictError(
            f"{len(serving.failures)} of {workers} workers cannot load the model {reference}"
            f" (worker {worker}: {reason.rstrip('.')}).",
            field="model",
            hint="Add a version that can be loaded; `lifelong doctor` says more.",
        )
    if not serving.is_settled:
        raise ConflictError(
            f"{workers - len(serving.ready)} of {workers} workers have not loaded the model {reference} within"
            f" {patience_seconds:g} s.",
            field="model",
            hint="Try again when `lifelong heads workers` lists it for every worker.",
        )


def check_execution_providers(settings: Settings) -> UsableProviders:
    """The execution providers of a service on this host, determined by the service's code in another process.

    Raises:
        ConfigurationError: a provider is unknown, not installed, or lacks a library, its driver or its device; the
            service would not start.
        InvalidInputError: the check failed, because the service is not installed here.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "lifelong_service.graphs.providers"],
            input=json.dumps(
                {"execution_providers": list(settings.execution_providers), "device": settings.gpu_device}
            ),
            capture_output=True,
            text=True,
            check=False,
            timeout=PROVIDERS_SECONDS,
            env=child_environment(Path(tempfile.gettempdir())),
        )
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, json.JSONDecodeError) as error:
        raise InvalidInputError(
            "the execution providers could not be checked.",
            field="LIFELONG_EXECUTION_PROVIDERS",
            hint="Is the extra cpu or gpu installed?",
        ) from error
    if done.returncode != 0:
        raise ConfigurationError(answer["message"], field=answer["field"], hint=answer["hint"])
    return UsableProviders(tuple(answer["providers"]), answer["unused_gpu"])


def _ask(request: dict[str, Any], folder: str, timeout_seconds: float, option: str | None) -> dict[str, Any]:
    """The answer of the checking process."""
    status, last_line = _run(request, Path(folder), timeout_seconds, option)
    try:
        answer: dict[str, Any] = json.loads(last_line)
    except json.JSONDecodeError:
        raise _died(status, option) from None
    if status == 0:
        return answer
    kind = next((kind for kind in _ERRORS if kind.code == answer["code"]), InvalidInputError)
    is_about_graph = answer["field"] in ("onnx", "external_data")
    raise kind(
        answer["message"],
        field=option if option and is_about_graph else answer["field"],
        hint=answer["hint"],
    )


def _run(
    request: dict[str, Any], folder: Path, timeout_seconds: float, option: str | None
) -> tuple[int, bytes]:
    """Exit status of the checking process and its last line, empty if it did not answer."""
    # The process limits the size of its files; a pipe has no such limit.
    with (folder / "answer").open("w+b") as answer:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "lifelong_service.graphs.check_graph"],
            stdin=subprocess.PIPE,
            stdout=answer,
            # Libraries write content of the graph there.
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=child_environment(folder),
            start_new_session=True,
        )
        try:
            process.communicate(json.dumps(request).encode(), timeout=timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise InvalidInputError(
                f"the graph was not loaded and run within {timeout_seconds:g} s.",
                field=option or "onnx",
                hint="Add it on the command line, which waits longer, or export a smaller graph.",
            ) from error
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and its child processes
            process.wait()
        answer.seek(max(0, answer.seek(0, os.SEEK_END) - _LONGEST_ANSWER))
        return process.returncode, (answer.read().splitlines() or [b""])[-1]


def _private_paths(settings: Settings, graph: Path) -> list[Path]:
    """Files and folders that hold no weights; a graph in the data directory was copied there by its owner."""
    keys = [settings.resolved_group_key_file.resolve(), settings.resolved_signing_key_file.resolve()]
    keys += [file.resolve() for file in settings.notifications.secret_files]
    state = settings.data_directory.resolve()
    return keys if graph.is_relative_to(state) else [*keys, state]


def child_environment(folder: Path) -> dict[str, str]:
    """Environment variables of the checking process: those that libraries need, without secrets."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in _VARIABLES or name.startswith(_VARIABLE_KINDS)
    }
    return kept | {
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "OPENBLAS_NUM_THREADS": "1",
        "ORT_DISABLE_TELEMETRY": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        # A bento finds its packages by the module path of its parent process.
        "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path),
    }


def _died(status: int, option: str | None) -> LifelongError:
    """The error for a checking process that ended without an answer."""
    if status > 0:  # from Python itself, before the graph was read
        return ConfigurationError(
            f"the check of the graph ended with status {status}.",
            field=option or "onnx",
            hint="Is the extra cpu or gpu installed? Run `python -m lifelong_service.graphs.check_graph` to see.",
        )
    name = signal.Signals(-status).name if status else "no answer"
    return InvalidInputError(
        f"loading and running the graph ended its process ({name}): it takes more memory or time than it may, or"
        " crashes ONNX Runtime.",
        field=option or "onnx",
        hint="Export a smaller graph. Is there memory for the model?",
    )
