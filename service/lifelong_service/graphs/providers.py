"""ONNX Runtime execution providers: graphs run on the configured ones only, without a silent fallback.

`python -m lifelong_service.graphs.providers` checks whether a service can start with execution providers. The request
on standard input is {"execution_providers": [...], "device": 0}; the last line of standard output is the answer, with
the exit status of `check_graph`.
"""

import difflib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import onnxruntime

from lifelong_core.values.errors import ConfigurationError, LifelongError
from lifelong_service.graphs.libraries import CUDA, MissingError, check_libraries

FIELD = "LIFELONG_EXECUTION_PROVIDERS"
CPU = "CPUExecutionProvider"
REFUSED = 2
"""Exit status of a check whose answer is an error."""
RECORD = ("session.record_ep_graph_assignment_info", "1")
"""Session option with which ONNX Runtime records the provider of each node."""


@dataclass(frozen=True)
class Choice:
    """The providers of a session.

    Attributes:
        names: in order of preference.
        unused_gpu: why the CPU was chosen although CUDA is installed; None: CUDA was chosen or is not installed, or the
            settings name the providers.
    """

    names: tuple[str, ...]
    unused_gpu: str | None = None


def choose_providers(configured: Sequence[str], *, device: int = 0) -> Choice:
    """Return the providers of a session.

    Args:
        configured: providers in the settings; empty: CUDA where it can be started, and the CPU.
        device: number of the GPU.

    Raises:
        ConfigurationError: a configured name is unknown to ONNX Runtime, this installation lacks the provider, or a
            library, driver or device that it needs is missing.
    """
    available = onnxruntime.get_available_providers()
    if not configured:
        return _automatic(available, device)
    for name in configured:
        _check_name(name, available)
        try:
            check_libraries(name, device)
        except MissingError as error:
            raise ConfigurationError(
                f"{name} cannot be started: {error.reason}.", field=FIELD, hint=error.hint
            ) from error
    return Choice(tuple(configured))


def check_providers(configured: Sequence[str], in_use: Sequence[str]) -> None:
    """Check that a session uses every configured provider: ONNX Runtime omits those that it cannot start.

    Args:
        configured: providers in the settings; empty: any.
        in_use: providers of the session.

    Raises:
        ConfigurationError: one is missing.
    """
    missing = [name for name in configured if name not in in_use]
    if missing:
        raise ConfigurationError(
            f"{missing[0]} could not be started, only {', '.join(in_use)}.",
            field=FIELD,
            hint="Its libraries and driver were found. The memory of the GPU may be full, or the driver does not fit;"
            " docs/gpu.md names the versions. Or change the setting.",
        )


def provider_of(session: onnxruntime.InferenceSession, configured: Sequence[str]) -> str:
    """Return the execution provider that runs most nodes of a graph.

    Args:
        session: created with the option RECORD; its list of providers names only candidates.
        configured: providers in the settings.

    Raises:
        ConfigurationError: providers other than the CPU are configured, and none of them runs a node.
    """
    nodes = Counter[str]()
    for part in session.get_provider_graph_assignment_info():
        nodes[part.ep_name] += len(part.get_nodes())
    wanted = [name for name in configured if name != CPU]
    if wanted and nodes and not any(nodes[name] for name in wanted):
        raise ConfigurationError(
            f"{' and '.join(wanted)} would run no node of the graph, {nodes.most_common(1)[0][0]} all of them.",
            field=FIELD,
            hint="Name a provider that supports the operators of the graph, or leave the setting out.",
        )
    return nodes.most_common(1)[0][0] if nodes else CPU


def _automatic(available: Sequence[str], device: int) -> Choice:
    if CUDA not in available:
        return Choice((CPU,))
    try:
        check_libraries(CUDA, device)
    except MissingError as error:
        return Choice((CPU,), f"{error.reason}. {error.hint}")
    return Choice((CUDA, CPU))


def _check_name(name: str, available: Sequence[str]) -> None:
    if name in available:
        return
    known: list[str] = onnxruntime.get_all_providers()
    if name in known:
        raise ConfigurationError(
            f"{name} is not in this installation of ONNX Runtime, which has {', '.join(available)}.",
            field=FIELD,
            hint="Install the extra gpu in place of cpu for CUDA and TensorRT, or change the setting.",
        )
    spellings = {
        provider.lower().removesuffix(end): provider
        for provider in known
        for end in ("", "executionprovider")
    }
    close = difflib.get_close_matches(name.lower(), list(spellings), n=1)
    meant = spellings[close[0]] if close else None
    raise ConfigurationError(
        f"ONNX Runtime knows no execution provider {name[:80]!r}.",
        field=FIELD,
        hint=f"Did you mean {meant}?" if meant else f"This installation has {', '.join(available)}.",
    )


def refuse(error: LifelongError) -> int:
    """Write an error as the answer of a check; return the exit status."""
    answer = {"code": error.code, "message": error.message, "field": error.field, "hint": error.hint}
    print(json.dumps(answer))  # noqa: T201
    return REFUSED


def main() -> int:
    """Read the request, check the providers, and write the answer."""
    try:
        request = json.load(sys.stdin)
        chosen = choose_providers(request["execution_providers"], device=request["device"])
    except LifelongError as error:
        return refuse(error)
    print(json.dumps({"providers": chosen.names, "unused_gpu": chosen.unused_gpu}))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
