"""Several processes on one database, as service workers and monitor are."""

import contextlib
import json
import subprocess
import sys
from uuid import UUID

import pytest

from lifelong_core.store import Store
from tests.unit.store.samples import read_all

WRITER = """
import json, sys
import numpy as np
from lifelong_core.store import LogEntry, Prediction, RequestKey, Store, new_prediction_id

url, batches, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
written = []
with Store.open(url, "memory://artifacts") as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for batch in range(batches):
        entries = [
            LogEntry(
                (Prediction(new_prediction_id(), 1, "default", 1, 0, np.zeros(3, np.float32)),),
                RequestKey(1, "default", f"{batch}-{row}") if row % 2 else None,
            )
            for row in range(rows)
        ]
        outcomes = store.predictions.append(entries)
        written += [str(e.predictions[0].id) for e, new in zip(entries, outcomes) if new]
print(json.dumps(written))
"""


@pytest.fixture
def url(store: Store) -> str:
    return store.database.url.render_as_string(hide_password=False)


def start(command: list[str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_processes_that_append_at_once_lose_nothing_and_write_each_request_once(store: Store, url: str):
    batches, rows, writers = 40, 8, 3
    command = [sys.executable, "-W", "error", "-c", WRITER, url, str(batches), str(rows)]
    written: list[UUID] = []
    with contextlib.ExitStack() as stack:
        processes = [stack.enter_context(start(command)) for _ in range(writers)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            output, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, "")
            written += [UUID(one) for one in json.loads(output)]
    # Half of the rows carry a request id that every process uses: those are written by one of them.
    assert len(written) == batches * rows // 2 * (writers + 1)
    assert sorted(read_all(store, limit=100)) == sorted(written)
