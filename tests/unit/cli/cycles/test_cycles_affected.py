"""`lifelong cycles affected`: the decisions that a swap affects, as table, CSV and JSON."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from uuid import UUID

import numpy as np
import pytest

from lifelong.commands.common import open_store
from lifelong.commands.cycles.cycle_text import print_cycle
from lifelong_core.deploy import LabeledLogits
from lifelong_core.entities.affected import AffectedFiguresAnswer, ChangeAnswer
from lifelong_core.entities.cycles import CycleAnswer
from lifelong_core.store import (
    Cycle,
    LogEntry,
    NewLabel,
    Prediction,
    new_prediction_id,
    register_calibration,
)
from lifelong_core.values.errors import ConflictError, InvalidInputError

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
Run = Callable[..., str]


@pytest.fixture
def cycle(installed: Run) -> str:
    """An installation whose monitor has swapped a head after 60 predictions; the id of that cycle."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 300)
    calibration = LabeledLogits(2 * np.eye(2)[labels] + rng.normal(size=(600, 2)), labels)
    logits = rng.normal(size=(120, 2)).astype(np.float32)
    with open_store() as store:
        # A spreadsheet would take such a name for a formula.
        store.tasks.add("triage", ["=benign()", "malignant"], [[0, 1], [5, 0]], actor="tests")
        model = store.models.add("triage", "net", kind="external", actor="tests")
        head = register_calibration(store, model.reference, calibration, actor="tests").head
        store.environments.ensure("clinic-a", limit=9)
        decisions = head.apply(logits).decisions.tolist()
        logged = [
            Prediction(new_prediction_id(), model.id, "clinic-a", 1, decision, row, bytes([index % 3]) * 16)
            for index, (row, decision) in enumerate(zip(logits, decisions, strict=True))
        ]
        store.predictions.append([LogEntry((one,)) for one in logged])
        store.labels.record([NewLabel(one.id, 0) for one in logged])
        done = Cycle(
            id=new_prediction_id(),
            model_id=model.id,
            environment="clinic-a",
            due_at=NOON,
            started_at=NOON,
            finished_at=NOON,
            outcome="swap",
            report={"reasons": []},
            window_samples=60,
            log_position=100,
            head_version=1,
            published_version=None,
        )
        window = {"window": {"first": str(logged[0].id)}}
        candidate = replace(head, bias=head.bias + np.array([2.0, 0.0]), provenance=window)
        store.cycles.finish(done, candidate=candidate, expected_sequence=None)
        kept = replace(done, id=new_prediction_id(), outcome="keep", due_at=NOON.replace(hour=13))
        store.cycles.finish(kept, candidate=None, expected_sequence=None)
        proposed = replace(done, id=new_prediction_id(), due_at=NOON.replace(hour=14), head_version=2)
        store.cycles.finish(
            proposed, candidate=replace(head, provenance=window), expected_sequence=None, mode="propose"
        )
    return str(done.id)


def test_the_table_shows_the_most_costly_ones(installed: Run, cycle: str) -> None:
    found = json.loads(installed("cycles", "affected", cycle, "--json"))
    affected = found["figures"]["affected"]
    assert affected == len(found["predictions"]) > 20
    shown = installed("cycles", "affected", cycle)
    lines = shown.splitlines()
    assert lines[0] == f"net@1 in clinic-a, cycle {cycle}"
    assert lines[1].startswith("Of 120 decisions from 20")
    assert f"head 2 would make {affected} otherwise" in lines[1]
    assert f"  - malignant -> =benign(): {affected}, cost " in shown
    assert "They come from 3 groups." in shown
    rows = [line for line in lines if line[:36] in {one["prediction_id"] for one in found["predictions"]}]
    assert [row[:36] for row in rows] == [one["prediction_id"] for one in found["predictions"][:20]]
    assert f"group {found['predictions'][0]['group']}, true class =benign()" in rows[0]
    assert lines[-1] == "The 20 most costly ones; --limit shows more, --csv all."
    assert "most costly ones" not in installed("cycles", "affected", cycle, "--limit", "1000")


def test_the_table_fits_a_terminal(installed: Run, cycle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, installed("cycles", "affected", cycle, "--limit", "3").splitlines())) <= 80


def test_csv_holds_ids_hashes_and_numbers_only(installed: Run, cycle: str) -> None:
    written = installed("cycles", "affected", cycle, "--csv")
    rows = list(csv.DictReader(StringIO(written)))
    listed = json.loads(installed("cycles", "affected", cycle, "--json"))["predictions"]
    assert [row["prediction_id"] for row in rows] == [one["prediction_id"] for one in listed]
    for row, one in zip(rows, listed, strict=True):
        assert set(row) == set(one) - {"label", "new_label"}
        assert UUID(row["prediction_id"])
        assert bytes.fromhex(row["group"])
        assert float(row["expected_cost"]) == one["expected_cost"]
        assert datetime.fromisoformat(row["logged_at"])
    assert "benign" not in written
    assert len(installed("cycles", "affected", cycle, "--csv", "--limit", "5").splitlines()) == 6


def test_show_names_the_figures_once_they_are_counted(installed: Run, cycle: str) -> None:
    assert "would make" not in installed("cycles", "show", cycle)
    with open_store() as store:
        period = store.affected.period(store.cycles.find(cycle))
        *_, figures = store.affected.scan(period)
        store.swaps.record(period.cycle_id, figures, is_final=True)
    shown = installed("cycles", "show", cycle)
    assert "head 2 would make " in shown
    assert f"List them: lifelong cycles affected {cycle}" in shown
    assert json.loads(installed("cycles", "show", cycle, "--json"))["affected"]["predictions"] == 120
    _, listed = json.loads(installed("cycles", "list", "--outcome", "swap", "--json"))
    assert listed["affected"]["predictions"] == 120


def test_a_cycle_without_a_head_has_no_list(installed: Run, cycle: str) -> None:
    (kept,) = json.loads(installed("cycles", "list", "--outcome", "keep", "--json"))
    assert kept["affected"] is None
    with pytest.raises(ConflictError, match="wanted no other head"):
        installed("cycles", "affected", kept["id"])


def test_a_proposal_says_what_approving_it_would_change(installed: Run, cycle: str) -> None:
    proposed, _ = json.loads(installed("cycles", "list", "--outcome", "swap", "--json"))
    assert f"lifelong cycles affected {proposed['id']}" in installed("cycles", "show", proposed["id"])
    # It is the head that made all these decisions.
    shown = installed("cycles", "affected", proposed["id"])
    assert "Z, the other head would make 0 otherwise (0.0 %)." in shown
    assert installed("cycles", "affected", proposed["id"], "--csv").count("\n") == 1


def test_one_format_at_a_time(installed: Run, cycle: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        installed("cycles", "affected", cycle, "--csv", "--json")
    assert refused.value.field == "--csv"


def test_a_cycle_names_the_decision_to_abstain(capsys: pytest.CaptureFixture[str]) -> None:
    figures = AffectedFiguresAnswer(
        since=NOON,
        until=NOON,
        predictions=10,
        affected=3,
        share=0.3,
        expected_cost=1.5,
        mean_cost=0.5,
        changes=[ChangeAnswer(2, 0, 3, 1.5)],
        groups=None,
        quarantined=0,
        other_models=0,
        gone=None,
        counted_at=NOON,
    )
    shown = CycleAnswer(
        id=new_prediction_id(),
        model="net@1",
        environment="clinic-a",
        due_at=NOON,
        started_at=NOON,
        finished_at=NOON,
        outcome="swap",
        head_version=1,
        published_version=2,
        window_samples=10,
        log_position=3,
        report={"reasons": []},
        affected=figures,
    )
    print_cycle(shown, ["benign", "malignant"])
    assert "  - abstain -> benign: 3, cost 1.5 more as made" in capsys.readouterr().out
