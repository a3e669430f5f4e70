"""Cases where the work around the model counts: a tiny network, small images, all servers by turns."""

import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.serving.rounds import Figures, in_turns, medians, ratios
from benchmarks.serving.servers import OURS, PLAIN, TYPED, Server, all_servers
from benchmarks.serving.tables import show_servers, spread
from benchmarks.serving.workloads import TINY

CONNECTIONS = (1, 16, 64)
BURST = 64
CLIENTS = 16
WARM_UP_SECONDS = 2
Found = dict[str, Any]


def measure_overhead(folder: Path, *, is_quick: bool) -> Found:
    """Rates and latencies with 1, 16 and 64 connections."""
    rounds, seconds = (2, 2) if is_quick else (3, 4)
    found: Found = {}
    with all_servers(TINY, TINY.graph(folder)) as servers:
        _warm_up(servers)
        for connections in CONNECTIONS:
            arms = {name: partial(one.load, connections, seconds) for name, one in servers.items()}
            found[str(connections)] = compared(in_turns(arms, rounds))
            show_servers(f"{TINY.name}, {connections} connections", found[str(connections)])
    return found


def measure_burst(folder: Path, *, is_quick: bool) -> Found:
    """A lone client before and after 64 connections at once."""
    rounds, seconds = (1, 2) if is_quick else (5, 2)
    with all_servers(TINY, TINY.graph(folder)) as servers:
        _warm_up(servers)
        measured = in_turns(
            {name: partial(_around_burst, one, seconds) for name, one in servers.items()}, rounds
        )
    found: Found = {"servers": {name: medians(some) for name, some in measured.items()}}
    for name, some in measured.items():
        found["servers"][name]["after_to_before"] = ratios(
            some, some, "after_per_second", "before_per_second"
        )
    print(
        "\n| lone client | before, /s | p50 ms | after a burst, /s | p50 ms | after / before |"
        "\n|---|---|---|---|---|---|"
    )
    for name, one in found["servers"].items():
        print(
            f"| {name} | {one['before_per_second']:,.0f} | {one['before_p50_ms']:.2f} |"
            f" {one['after_per_second']:,.0f} | {one['after_p50_ms']:.2f} |"
            f" {spread(one['after_to_before'])} |",
            flush=True,
        )
    return found


def measure_longest(folder: Path, *, is_quick: bool) -> Found:
    """The longest latency in more than a minute of 16 clients, because pauses are rare: ours and the plain peer."""
    seconds = 10 if is_quick else 70
    with all_servers(TINY, TINY.graph(folder)) as servers:
        _warm_up(servers)
        arms = {name: partial(servers[name].load, CLIENTS, seconds) for name in (OURS, PLAIN)}
        found = compared(in_turns(arms, 1)) | {"seconds": seconds}
    show_servers(f"{TINY.name}, {CLIENTS} connections, {seconds} s", found)
    return found


def compared(measured: Mapping[str, list[Figures]]) -> Found:
    """Medians of each server, and what ours reaches of each peer in the same round: median, least and most."""
    return {
        "rounds": len(measured[OURS]),
        "servers": {name: medians(some) for name, some in measured.items()},
        "tail_to_median": ratios(measured[OURS], measured[OURS], "p99_ms", "p50_ms"),
        "ours_to": {
            name: ratios(measured[OURS], measured[name], "per_second")
            for name in (TYPED, PLAIN)
            if name in measured
        },
    }


def _warm_up(servers: Mapping[str, Server]) -> None:
    for server in servers.values():
        server.load(CLIENTS, WARM_UP_SECONDS)


def _around_burst(server: Server, seconds: float) -> Figures:
    before = server.load(1, seconds)
    burst = server.load(BURST, seconds)
    after = server.load(1, seconds)
    time.sleep(0.5)  # the next server begins when this one is idle
    return (
        {f"before_{name}": value for name, value in before.items()}
        | {f"after_{name}": value for name, value in after.items()}
        | {"burst_refused": burst["refused"]}
    )
