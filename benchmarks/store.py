"""What the prediction log costs: commit latency and rows/s, at 1, 8 and 32 rows per transaction, on both databases.

    python -m benchmarks.store [--json] [--quick]

Every row is one request of one prediction with 8 classes; `keyed` rows carry a request id of their own, as from
clients that may repeat a request. The peer is the bare driver (sqlite3, psycopg) writing the same bytes into one table
without indexes, one executemany and one commit per batch, so the ratio is what our keys, indexes and checks cost.
"""

import argparse
import json
import os
import platform
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import sqlalchemy

from lifelong_core.store import LogEntry, Prediction, RequestKey, Store, new_prediction_id
from tests.databases import PostgreSQL

CLASSES = 8
ROWS = (1, 8, 32)
SEED = 0
Append = Callable[[list[LogEntry]], object]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    parser.add_argument("--quick", action="store_true", help="a tenth of the transactions")
    options = parser.parse_args()
    transactions = 40 if options.quick else 400
    with tempfile.TemporaryDirectory() as folder, PostgreSQL() as server:
        figures = {
            "sqlite": measure(lambda: sqlite_writers(Path(folder)), transactions),
            "postgresql": measure(lambda: postgresql_writers(server), transactions),
        }
    report = {
        "benchmark": "store",
        "transactions": transactions,
        "seed": SEED,
        **machine(),
        "figures": figures,
    }
    if options.json:
        print(json.dumps(report))
    else:
        show(report)


def measure(writers: Callable[[], Any], transactions: int) -> dict[str, dict[str, float]]:
    """Ours and the peer's by turns in one run, so that both meet the same machine."""
    figures: dict[str, dict[str, float]] = {}
    with writers() as (ours, peer):
        for rows in ROWS:
            for is_keyed in (False, True):
                times = {"ours": [], "peer": []}
                for turn in range(transactions + 10):
                    for name, append in (("ours", ours), ("peer", peer)):
                        entries = batch(rows, is_keyed=is_keyed)
                        start = time.perf_counter()
                        append(entries)
                        # The first ten warm up.
                        times[name] += [time.perf_counter() - start] if turn >= 10 else []
                figures[f"{rows} {'keyed' if is_keyed else 'plain'}"] = summary(rows, **times)
    return figures


def summary(rows: int, ours: list[float], peer: list[float]) -> dict[str, float]:
    milliseconds, bare = np.array(ours) * 1000, np.array(peer) * 1000
    return {
        "rows_per_second": rows * len(ours) / sum(ours),
        "p50_ms": float(np.quantile(milliseconds, 0.5)),
        "p99_ms": float(np.quantile(milliseconds, 0.99)),
        "peer_p50_ms": float(np.quantile(bare, 0.5)),
        "peer_p99_ms": float(np.quantile(bare, 0.99)),
        "ratio_p50": float(np.quantile(milliseconds, 0.5) / np.quantile(bare, 0.5)),
    }


def batch(rows: int, *, is_keyed: bool) -> list[LogEntry]:
    logits = np.random.default_rng(SEED).normal(size=(rows, CLASSES)).astype(np.float32)
    entries: list[LogEntry] = []
    for row in logits:
        prediction = Prediction(new_prediction_id(), 1, "default", 1, 0, row, None)
        key = RequestKey(1, "default", os.urandom(16).hex()) if is_keyed else None
        entries.append(LogEntry((prediction,), key, os.urandom(32) if is_keyed else b""))
    return entries


def peer_rows(entries: list[LogEntry]) -> list[tuple[Any, ...]]:
    return [
        (one.id.bytes, one.model_id, one.environment, one.head_version, one.decision, one.logits.tobytes())
        for entry in entries
        for one in entry.predictions
    ]


@contextmanager
def sqlite_writers(folder: Path) -> Iterator[tuple[Append, Append]]:
    url = f"sqlite:///{folder / 'lifelong.db'}"
    Store.migrate(url)
    bare = sqlite3.connect(folder / "bare.db")
    bare.execute("PRAGMA journal_mode = WAL")
    bare.execute("PRAGMA synchronous = NORMAL")
    bare.execute(
        "CREATE TABLE log (id BLOB, model INT, environment TEXT, head INT, decision INT, logits BLOB)"
    )

    def peer(entries: list[LogEntry]) -> None:
        bare.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", peer_rows(entries))
        bare.commit()

    with Store.open(url, f"file://{folder}/artifacts") as store:
        yield store.predictions.append, peer
    bare.close()


@contextmanager
def postgresql_writers(server: PostgreSQL) -> Iterator[tuple[Append, Append]]:
    url = server.create(migrated=True)
    with psycopg.connect(url.replace("+psycopg", "")) as bare:
        bare.execute(
            "CREATE TABLE bare_log (id bytea, model int, environment text, head int, decision int, logits bytea)"
        )
        bare.commit()

        def peer(entries: list[LogEntry]) -> None:
            bare.cursor().executemany(
                "INSERT INTO bare_log VALUES (%s, %s, %s, %s, %s, %s)", peer_rows(entries)
            )
            bare.commit()

        with Store.open(url, "memory://benchmark") as store:
            yield store.predictions.append, peer


def machine() -> dict[str, Any]:
    return {
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}, {os.cpu_count()} cores",
        "load_average": os.getloadavg()[0],
        "threads": "one writer; databases at their defaults (SQLite WAL and NORMAL, PostgreSQL synchronous_commit on)",
        "versions": {
            "python": sys.version.split()[0],
            "sqlite": sqlite3.sqlite_version,
            "sqlalchemy": sqlalchemy.__version__,
            "psycopg": psycopg.__version__,
        },
        "peer": "bare sqlite3 / psycopg executemany into one table without keys",
    }


def show(report: dict[str, Any]) -> None:
    print(f"{report['machine']}, load {report['load_average']:.1f}; {report['versions']}")
    print(f"{'':28}{'rows/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'peer p50':>10}{'ratio':>7}")
    for database, cases in report["figures"].items():
        for case, one in cases.items():
            print(
                f"{database:12}{case:>10} rows {one['rows_per_second']:>10.0f}{one['p50_ms']:>9.2f}"
                f"{one['p99_ms']:>9.2f}{one['peer_p50_ms']:>10.2f}{one['ratio_p50']:>7.1f}"
            )


if __name__ == "__main__":
    main()
