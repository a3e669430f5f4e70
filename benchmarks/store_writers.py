"""Writers of batches of predictions: our log and, as its peer, the bare driver; alone, or two processes at once.

    python -m benchmarks.store_writers WRITER URL DURABILITY ROWS KEYED TRANSACTIONS

is one of several such processes: it says `ready`, begins when it gets a line, and prints the seconds of each
transaction as JSON.
"""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from lifelong_core.store import LogEntry, Prediction, RequestKey, Store, new_prediction_id

CLASSES = 8
SEED = 0
WARM_UP = 10
WRITERS = ("ours", "peer")
Append = Callable[[list[LogEntry]], object]
_COLUMNS = "id {blob}, model int, environment text, head int, decision int, logits {blob}"


def main() -> None:
    writer, url, durability, rows, is_keyed, transactions = sys.argv[1:]
    with open_writer(writer, url, durability) as append:
        for _ in range(WARM_UP):
            append(batch(int(rows), is_keyed=is_keyed == "keyed"))
        print("ready", flush=True)
        sys.stdin.readline()
        seconds = [timed(append, int(rows), is_keyed=is_keyed == "keyed") for _ in range(int(transactions))]
    print(json.dumps(seconds))


def timed(append: Append, rows: int, *, is_keyed: bool) -> float:
    """Seconds that one transaction takes, commit included."""
    entries = batch(rows, is_keyed=is_keyed)
    began = time.perf_counter()
    append(entries)
    return time.perf_counter() - began


def together(
    processes: int, writer: str, url: str, durability: str, rows: int, transactions: int
) -> tuple[list[float], float]:
    """The seconds of all transactions of so many processes, which write as fast as they can, and how long they took."""
    arguments = [writer, url, durability, str(rows), "keyed", str(transactions)]
    with ExitStack() as stack:
        running = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "benchmarks.store_writers", *arguments],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for _ in range(processes)
        ]
        for process in running:
            if process.stdout is None or process.stdout.readline() != "ready\n":
                raise RuntimeError("a writer did not start")
        began = time.perf_counter()
        for process in running:
            if process.stdin is not None:
                process.stdin.write("\n")
                process.stdin.flush()
        printed = [process.stdout.readline() for process in running if process.stdout is not None]
        wall = time.perf_counter() - began
    return [seconds for line in printed for seconds in json.loads(line)], wall


def batch(rows: int, *, is_keyed: bool) -> list[LogEntry]:
    """Requests of one prediction each; keyed ones carry a request id, as from clients that may repeat a request."""
    logits = np.random.default_rng(SEED).normal(size=(rows, CLASSES)).astype(np.float32)
    entries: list[LogEntry] = []
    for row in logits:
        prediction = Prediction(new_prediction_id(), 1, "default", 1, 0, row, None)
        key = RequestKey(1, "default", os.urandom(16).hex()) if is_keyed else None
        entries.append(LogEntry((prediction,), key, os.urandom(32) if is_keyed else b""))
    return entries


@contextmanager
def open_writer(writer: str, url: str, durability: str) -> Iterator[Append]:
    """What writes a batch in one transaction to a database that `prepare` has made."""
    if writer == "ours":
        with Store.open(url, "memory://benchmark", durability=durability) as store:  # type: ignore[arg-type]
            yield store.predictions.append
    elif url.startswith("sqlite"):
        with _bare_sqlite(url, durability) as append:
            yield append
    else:
        with _bare_postgresql(url) as append:
            yield append


def prepare(url: str) -> None:
    """Our tables, and the peer's one table without keys."""
    Store.migrate(url)
    if url.startswith("sqlite"):
        with sqlite3.connect(_bare_file(url)) as bare:
            bare.execute("PRAGMA journal_mode = WAL")
            bare.execute(f"CREATE TABLE bare_log ({_COLUMNS.format(blob='blob')})")
        bare.close()
        return
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute(f"CREATE TABLE bare_log ({_COLUMNS.format(blob='bytea')})".encode())


@contextmanager
def _bare_sqlite(url: str, durability: str) -> Iterator[Append]:
    bare = sqlite3.connect(_bare_file(url), timeout=30)
    bare.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")

    def append(entries: list[LogEntry]) -> None:
        bare.executemany("INSERT INTO bare_log VALUES (?, ?, ?, ?, ?, ?)", _peer_rows(entries))
        bare.commit()

    yield append
    bare.close()


@contextmanager
def _bare_postgresql(url: str) -> Iterator[Append]:
    with psycopg.connect(url.replace("+psycopg", "")) as bare:

        def append(entries: list[LogEntry]) -> None:
            statement = "INSERT INTO bare_log VALUES (%s, %s, %s, %s, %s, %s)"
            bare.cursor().executemany(statement, _peer_rows(entries))
            bare.commit()

        yield append


def _bare_file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///")).with_name("bare.db")


def _peer_rows(entries: list[LogEntry]) -> list[tuple[Any, ...]]:
    return [
        (one.id.bytes, one.model_id, one.environment, one.head_version, one.decision, one.logits.tobytes())
        for entry in entries
        for one in entry.predictions
    ]


if __name__ == "__main__":
    main()
