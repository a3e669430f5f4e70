"""The size of an ONNX graph, and the time for one image by the clock of the caller."""

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lifelong_core.promotion.document import RuntimeCost
from lifelong_core.runtime.cores import usable_cores

WARM_UP = 3
"""runs before the clock counts"""
RUNS = 30


def measure_cost(
    graph: bytes,
    logits_of: Callable[[NDArray[np.float32]], Any] | None,
    image: NDArray[np.float32] | None,
    *,
    clock: Callable[[], float],
) -> RuntimeCost:
    """Measure the size of a graph and the time for one image.

    Args:
        graph: the ONNX file.
        logits_of: computes the logits (n, C) of inputs (n, ...); None: times are not measured.
        image: one input, shape (1, ...).
        clock: seconds from any fixed moment on, such as `time.perf_counter`.
    """
    times = [] if logits_of is None or image is None else _times(logits_of, image, clock)
    return RuntimeCost(
        graph_bytes=len(graph),
        milliseconds=float(np.median(times)) if times else None,
        slowest_milliseconds=float(np.quantile(times, 0.95)) if times else None,
        runs=len(times),
        machine=describe_machine(),
    )


def describe_machine() -> str:
    """The processor and the number of processors that this process may use."""
    usable = usable_cores()
    return f"{platform.system()} {platform.machine()}, {usable} processor{'s' if usable != 1 else ''}"


def _times(
    logits_of: Callable[[NDArray[np.float32]], Any], image: NDArray[np.float32], clock: Callable[[], float]
) -> list[float]:
    """Milliseconds of RUNS runs."""
    for _ in range(WARM_UP):
        logits_of(image)
    times: list[float] = []
    for _ in range(RUNS):
        started = clock()
        logits_of(image)
        times.append(1000 * (clock() - started))
    return times
