"""Several processes on one database, as service workers and monitor."""

import json
from uuid import UUID

import pytest

from lifelong_core.store import Store
from tests.unit.store.samples import add_serving_model, answer_of, read_all, started_together, tell

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


def test_processes_that_append_at_once_lose_nothing_and_write_each_request_once(store: Store, url: str):
    batches, rows, writers = 40, 8, 3
    written: list[UUID] = []
    with started_together(WRITER, *[(url, str(batches), str(rows))] * writers) as processes:
        for process in processes:
            tell(process, "go")
        for process in processes:
            output, errors = process.communicate(timeout=60)
            assert (process.returncode, errors) == (0, "")
            written += [UUID(one) for one in json.loads(output)]
    # Half of the rows carry a request id that every process uses: those are written by one of them.
    assert len(written) == batches * rows // 2 * (writers + 1)
    assert sorted(read_all(store, limit=100)) == sorted(written)


CHANGER = """
import json, sys
from lifelong_core.values.errors import ConflictError
from lifelong_core.store import Store
from tests.unit.store.samples import head

url, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
done = []
with Store.open(url, "memory://artifacts") as store:
    print("ready", flush=True)
    for _ in range(rounds):
        sequence, what = json.loads(sys.stdin.readline())
        options = {"environment": None, "actor": name, "expected_sequence": sequence}
        try:
            if what == "publish":
                store.heads.publish("dermatology", head(1), **options)
            elif what == "rollback":
                store.heads.rollback("dermatology", **options)
            elif what == "pin":
                store.heads.pin("dermatology", reason="held", **options)
            else:
                store.heads.unpin("dermatology", **options)
            outcome = "done"
        except ConflictError as error:
            outcome = str(error)
        print(json.dumps(outcome), flush=True)
"""


def test_of_processes_that_saw_the_same_head_one_changes_it(store: Store, url: str):
    """Publish, roll back and pin at the same moment from two processes, again and again."""
    add_serving_model(store)
    names, rounds = ("ann", "bob"), ["publish", "publish", "rollback", "pin", "unpin"] * 4
    with started_together(CHANGER, *[(url, name, str(len(rounds))) for name in names]) as processes:
        for what in rounds:
            history = store.heads.activations("dermatology")
            pins = store.heads.pins("dermatology")
            for process in processes:
                tell(process, json.dumps([history[-1].sequence, what]))
            outcomes = [json.loads(answer_of(process)) for process in processes]
            refused = [outcome for outcome in outcomes if outcome != "done"]
            assert len(refused) == 1, (what, outcomes)
            changed = store.heads.activations("dermatology")
            if what in ("publish", "rollback"):
                assert "changed meanwhile" in refused[0]
                assert [one.sequence for one in changed[len(history) :]] == [history[-1].sequence + 1]
                assert changed[-1].activated_by == names[outcomes.index("done")]
            else:
                assert changed == history
                assert len(store.heads.pins("dermatology")) == len(pins) + (1 if what == "pin" else -1)
        for process in processes:
            assert process.communicate(timeout=60)[1] == ""
    versions = [record.version for record in store.heads.list("dermatology")]
    assert versions == list(range(1, len(versions) + 1))
    # Everything that was done is in the audit log, and nothing else.
    done = [entry.action for entry in store.audit.list() if entry.actor in names]
    assert sorted(done) == sorted(f"heads.{what}" for what in rounds)
