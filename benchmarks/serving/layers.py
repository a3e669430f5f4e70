"""Shares of a profile by layer, from a map of module prefixes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

OTHER: Final = "other"
LAYERS: Final[Mapping[str, Sequence[str]]] = {
    "HTTP server": (
        "uvicorn/",
        "uvloop/",
        "asyncio/",
        "lifelong_service/transport/",
    ),
    "web framework": ("starlette/", "fastapi/", "anyio/"),
    "guard": (
        "lifelong_service/guard/",
        "lifelong_service/bodies/",
        "lifelong_service/clients/",
        "lifelong_service/routes/",
        "lifelong_service/application.py",
        "lifelong_core/store/access/token_lookup.py",
        "lifelong_core/store/access/",
    ),
    "batcher": ("lifelong_service/prediction/", "lifelong_service/worker/", "lifelong_core/runtime/"),
    "decode": ("lifelong_service/decoding/", "lifelong_core/images/", "PIL/"),
    "inference": ("lifelong_service/graphs/", "onnxruntime/"),
    "head": ("lifelong_core/deploy/", "lifelong_core/decision_rules/"),
    "log": (
        "lifelong_core/store/",
        "sqlalchemy/",
        "lifelong_service/prediction/prediction_log.py",
        "lifelong_service/prediction/database_calls.py",
    ),
    "metrics": (
        "prometheus_client/",
        "lifelong_service/metrics.py",
        "lifelong_service/guard/request_counts.py",
    ),
    "JSON": ("json/", "pydantic_core/", "lifelong_service/prediction/answers.py"),
}
"""Prefixes of module paths; the longest one that fits a frame decides."""


def layer_of(frame: str) -> str | None:
    """The layer of a frame, such as `guarded (lifelong_service/guard/route.py:193)`; None: of no layer.

    Examples:
        >>> layer_of("Response.render (starlette/responses.py:55)"), layer_of("Thread.run (threading.py:982)")
        ('web framework', None)
    """
    _, _, location = frame.rpartition("(")
    fitting = [
        (len(prefix), layer)
        for layer, prefixes in LAYERS.items()
        for prefix in prefixes
        if location.startswith(prefix)
    ]
    return max(fitting)[1] if fitting else None


def shares_by_layer(collapsed: str) -> dict[str, float]:
    """Share of the samples of each layer, the largest first.

    A sample belongs to the innermost frame that has a layer: numpy called by the head is the head's.

    Args:
        collapsed: lines of frames, the outermost first, separated by semicolons, with the number of samples behind.
    """
    counts = Counter[str]()
    for line in collapsed.splitlines():
        stack, _, samples = line.rpartition(" ")
        if stack:
            layers = (layer_of(frame) for frame in reversed(stack.split(";")))
            counts[next((layer for layer in layers if layer is not None), OTHER)] += int(samples)
    total = counts.total()
    return {layer: count / total for layer, count in counts.most_common()}
