"""ONNX Runtime execution providers: graphs run on the configured ones only, without a silent fallback."""

import difflib
from collections import Counter
from collections.abc import Sequence

import onnxruntime

from lifelong_core.errors import ConfigurationError

FIELD = "LIFELONG_EXECUTION_PROVIDERS"
CPU = "CPUExecutionProvider"
RECORD = ("session.record_ep_graph_assignment_info", "1")
"""Session option with which ONNX Runtime records the provider of each node."""
_AUTOMATIC = ("CUDAExecutionProvider", CPU)


def choose_providers(configured: Sequence[str]) -> list[str]:
    """Return the providers of a session, in order of preference.

    Args:
        configured: providers in the settings; empty: CUDA if this installation has it, then the CPU.

    Raises:
        ConfigurationError: the name is unknown to ONNX Runtime, or this installation lacks the provider.
    """
    available = onnxruntime.get_available_providers()
    if not configured:
        return [name for name in _AUTOMATIC if name in available]
    for name in configured:
        _check_name(name, available)
    return list(configured)


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
            hint="Check its driver and libraries, which the log of ONNX Runtime names, or change the setting.",
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
    spellings = {one.lower().removesuffix(end): one for one in known for end in ("", "executionprovider")}
    close = difflib.get_close_matches(name.lower(), list(spellings), n=1)
    meant = spellings[close[0]] if close else None
    raise ConfigurationError(
        f"ONNX Runtime knows no execution provider {name[:80]!r}.",
        field=FIELD,
        hint=f"Did you mean {meant}?" if meant else f"This installation has {', '.join(available)}.",
    )
