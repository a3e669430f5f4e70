"""Cases where the model counts: ResNet34 at 224 pixels, beside bare ONNX Runtime in as many threads."""

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.serving.classification import Classification, bare_session
from benchmarks.serving.overhead import compared
from benchmarks.serving.rounds import Figures, in_turns, medians, ratios
from benchmarks.serving.servers import OURS, all_servers, ours
from benchmarks.serving.tables import show_servers, spread
from benchmarks.serving.workloads import RESNET

CONNECTIONS = (1, 8)
THREADS = 1
BATCH = 8
BARE = {
    "decoded": "bare ONNX Runtime, one decoded image at once",
    "decoded_batches": f"the same, {BATCH} decoded images at once",
    "with_decode": "the same, one image at once, decoded in the same thread",
}
"""Loops without a server, in this process."""
WORKER_CLIENTS = 8
Found = dict[str, Any]


def measure_compute(folder: Path, *, is_quick: bool) -> Found:
    """All servers with 1 and 8 connections, and the bare loops in the same rounds."""
    rounds, seconds = (2, 3) if is_quick else (3, 4)
    graph = RESNET.graph(folder)
    found: Found = {}
    bare = _bare_arms(_classification(graph), seconds / 2)
    for name, meaning in BARE.items():
        print(f"{name}: {meaning}")
    with all_servers(RESNET, graph) as servers:
        for server in servers.values():
            server.load(BATCH, 2)
        for connections in CONNECTIONS:
            loads = {
                name: partial(one.load, connections, seconds, is_slow=True) for name, one in servers.items()
            }
            # Processor time and latencies are those of servers, so the loops are no rows of the same table.
            measured = in_turns({**loads, **bare}, rounds)
            case = compared({name: measured[name] for name in servers})
            case["bare"] = {name: medians(measured[name])["per_second"] for name in bare}
            case["ours_to"] |= {name: ratios(measured[OURS], measured[name], "per_second") for name in bare}
            found[str(connections)] = case
            show_servers(f"{RESNET.name} at {RESNET.edge}, {connections} connections, {THREADS} thread", case)
    return found


def measure_workers(folder: Path, *, is_quick: bool) -> Found:
    """Two workers against one, with one thread each; and two threads with bare sessions against one."""
    rounds, seconds = (2, 3) if is_quick else (4, 5)
    graph = RESNET.graph(folder)
    with ExitStack() as stack:
        arms: dict[str, Callable[[], Figures]] = {}
        for workers in (1, 2):
            _, server = stack.enter_context(ours(RESNET, graph, workers=workers, threads=THREADS))
            arms[f"{workers}"] = partial(server.load, WORKER_CLIENTS, seconds, is_slow=True)
            sessions = [_classification(graph) for _ in range(workers)]
            arms[f"bare {workers}"] = partial(_together, sessions, seconds)
            arms[f"{workers}"]()
        measured = in_turns(arms, rounds)
    found: Found = {
        "workers": {name: medians(some) for name, some in measured.items()},
        "two_to_one": ratios(measured["2"], measured["1"], "per_second"),
        "bare_two_to_one": ratios(measured["bare 2"], measured["bare 1"], "per_second"),
    }
    print(f"\n{RESNET.name} at {RESNET.edge}, {WORKER_CLIENTS} connections, {THREADS} thread for each worker")
    print("| workers | images/s | p50 ms | p99 ms | refused | bare sessions in as many threads, images/s |")
    print("|---|---|---|---|---|---|")
    for workers in ("1", "2"):
        one = found["workers"][workers]
        bare = found["workers"][f"bare {workers}"]["per_second"]
        print(
            f"| {workers} | {one['per_second']:.1f} | {one['p50_ms']:.0f} | {one['p99_ms']:.0f} |"
            f" {one['refused']:.0f} | {bare:.1f} |"
        )
    print(
        f"two to one: ours {spread(found['two_to_one'])}, bare {spread(found['bare_two_to_one'])}",
        flush=True,
    )
    return found


def _classification(graph: Path) -> Classification:
    return Classification(bare_session(graph, THREADS), RESNET.preprocessing)


def _bare_arms(classification: Classification, seconds: float) -> dict[str, Callable[[], Figures]]:
    images = RESNET.jpegs()
    inputs = [classification.pixels(image) for image in images]
    batches = [inputs[start : start + BATCH] for start in range(0, len(inputs), BATCH)]

    def with_decode(image: bytes) -> None:
        classification.logits([classification.pixels(image)])

    return {
        "decoded": lambda: _repeat(classification.logits, [[one] for one in inputs], 1, seconds),
        "decoded_batches": lambda: _repeat(classification.logits, batches, BATCH, seconds),
        "with_decode": lambda: _repeat(with_decode, images, 1, seconds),
    }


def _repeat(call: Callable[[Any], object], arguments: list[Any], images: int, seconds: float) -> Figures:
    """Images per second of calls with the arguments in turn, each of so many images."""
    began = time.perf_counter()
    for calls, argument in enumerate(itertools.cycle(arguments), start=1):
        call(argument)
        passed = time.perf_counter() - began
        if passed >= seconds:
            return {"per_second": calls * images / passed}
    raise AssertionError("there are no arguments")


def _together(sessions: list[Classification], seconds: float) -> Figures:
    """Images per second of all sessions, each in a thread of its own, one decoded image at once."""
    rates: list[float] = []

    def run(session: Classification) -> None:
        inputs = [[session.pixels(image)] for image in RESNET.jpegs()]
        rates.append(_repeat(session.logits, inputs, 1, seconds)["per_second"])

    threads = [threading.Thread(target=run, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"per_second": sum(rates)}
