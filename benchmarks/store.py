"""Cost of the prediction log on both databases, and for the service.

    python -m benchmarks.store [--json] [--quick] [--part log|cycle|ticks|service ...]

- One writer: commit latency and rows/s at 1, 8 and 32 rows per transaction. Every row is one request of one prediction
  with 8 classes; `keyed` rows carry a request id of their own.
- Two processes that write keyed rows at once, as fast as they can; SQLite also with `log_durability = "power"`.
- A monitor's cycle over 1,000,000 logged rows of 168 hours, whose summaries it keeps up to date.
- A monitor's ticks over 5,000 populations, of which 50 have news.
- The service at saturation and at 500 requests/s of /v1/logits, with the log and with the log switched off.

The peer of the first two is the bare driver (sqlite3, psycopg) writing the same bytes into one table without keys, one
executemany and one commit per batch: the ratio is what our keys, indexes and checks cost.
"""

import argparse
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_window import measure_cycles, show_cycles
from benchmarks.log_overhead import measure_overhead, show_overhead
from benchmarks.machine import describe
from benchmarks.many_populations import measure_ticks, show_ticks
from benchmarks.store_writers import SEED, WARM_UP, WRITERS, open_writer, prepare, timed, together
from tests.databases import KINDS, PostgreSQL

ROWS = (1, 8, 32)
PROCESSES = 2
WINDOW, QUICK_WINDOW = 1_000_000, 50_000
POPULATIONS, QUICK_POPULATIONS = (5_000, 50), (200, 5)
"""All, and the busy ones."""
PARTS = ("log", "cycle", "ticks", "service")
Figures = dict[str, dict[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="a tenth of the transactions, short loads")
    parser.add_argument(
        "--part", action="append", choices=PARTS, default=[], help="only this; all by default"
    )
    options = parser.parse_args()
    parts = options.part or PARTS
    transactions = 40 if options.quick else 400
    with PostgreSQL() as server:
        one: dict[str, Figures] = {}
        two: dict[str, Figures] = {}
        for kind in KINDS if "log" in parts else ():
            with fresh(kind, server) as url:
                one[kind] = one_writer(url, transactions)
            for durability in ("process", "power") if kind == "sqlite" else ("process",):
                with fresh(kind, server) as url:
                    two[f"{kind} {durability}"] = two_processes(url, durability, transactions)
        rows, cycles = (QUICK_WINDOW, 3) if options.quick else (WINDOW, 10)
        large = {
            kind: measure_cycles(kind, server, rows=rows, cycles=cycles)
            for kind in (KINDS if "cycle" in parts else ())
        }
        populations, busy = QUICK_POPULATIONS if options.quick else POPULATIONS
        ticks = {
            kind: measure_ticks(kind, server, populations=populations, busy=busy)
            for kind in (KINDS if "ticks" in parts else ())
        }
        overhead = {
            kind: measure_overhead(kind, server, is_quick=options.quick)
            for kind in (KINDS if "service" in parts else ())
        }
    report = {
        "benchmark": "store",
        "transactions": transactions,
        "seed": SEED,
        "load_average": os.getloadavg()[0],
        **describe("sqlalchemy", "psycopg", "bentoml"),
        "sqlite": sqlite3.sqlite_version,
        "peer": "bare sqlite3 / psycopg executemany into one table without keys; the cycle: its window summarised from"
        " the rows; the service: itself without the log",
        "figures": one,
        "two_processes": two,
        "cycle": large,
        "ticks": ticks,
        "service": overhead,
    }
    if options.json:
        print(json.dumps(report))
    else:
        show(report)


@contextmanager
def fresh(kind: str, server: PostgreSQL) -> Iterator[str]:
    """A database with our tables and the peer's."""
    with tempfile.TemporaryDirectory() as folder:
        url = server.create(migrated=True) if kind == "postgresql" else f"sqlite:///{Path(folder) / 'log.db'}"
        prepare(url)
        yield url
        if kind == "postgresql":
            server.drop(url)


def one_writer(url: str, transactions: int) -> Figures:
    """Ours and the peer's by turns in one process, so that both meet the same machine."""
    figures: Figures = {}
    with ExitStack() as stack:
        writers = {name: stack.enter_context(open_writer(name, url, "process")) for name in WRITERS}
        for rows in ROWS:
            for is_keyed in (False, True):
                seconds: dict[str, list[float]] = {name: [] for name in WRITERS}
                for _ in range(WARM_UP + transactions):
                    for name, append in writers.items():
                        seconds[name].append(timed(append, rows, is_keyed=is_keyed))
                ours, peer = (seconds[name][WARM_UP:] for name in WRITERS)
                case = f"{rows} {'keyed' if is_keyed else 'plain'}"
                figures[case] = summary(ours, peer) | {"rows_per_second": rows * len(ours) / sum(ours)}
    return figures


def two_processes(url: str, durability: str, transactions: int) -> Figures:
    """Two of ours at once, then two of the peer's."""
    figures: Figures = {}
    for rows in ROWS:
        ours, wall = together(PROCESSES, "ours", url, durability, rows, transactions)
        peer, peer_wall = together(PROCESSES, "peer", url, durability, rows, transactions)
        figures[f"{rows} keyed"] = summary(ours, peer) | {
            "rows_per_second": rows * len(ours) / wall,
            "peer_rows_per_second": rows * len(peer) / peer_wall,
            "longest_ms": max(ours) * 1000,
        }
    return figures


def summary(ours: Sequence[float], peer: Sequence[float]) -> dict[str, float]:
    p50, p99 = np.quantile(ours, (0.5, 0.99)) * 1000
    peer_p50, peer_p99 = np.quantile(peer, (0.5, 0.99)) * 1000
    return {
        "p50_ms": float(p50),
        "p99_ms": float(p99),
        "peer_p50_ms": float(peer_p50),
        "peer_p99_ms": float(peer_p99),
        "ratio_p50": float(p50 / peer_p50),
    }


def show(report: dict[str, Any]) -> None:
    print(f"{report['processor']}, {report['cores']} cores, load {report['load_average']:.1f}")
    for title, table in (("one writer", report["figures"]), ("two processes", report["two_processes"])):
        if table:
            print(f"{title:34}{'rows/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'peer p50':>10}{'ratio':>7}")
        for database, cases in table.items():
            for case, one in cases.items():
                print(
                    f"{database:20}{case:>9} rows{one['rows_per_second']:>10.0f}{one['p50_ms']:>9.2f}"
                    f"{one['p99_ms']:>9.2f}{one['peer_p50_ms']:>10.2f}{one['ratio_p50']:>7.1f}"
                )
    for database, figures in report["cycle"].items():
        show_cycles(database, figures)
    for database, figures in report["ticks"].items():
        show_ticks(database, figures)
    for database, figures in report["service"].items():
        show_overhead(database, figures)


if __name__ == "__main__":
    main()
