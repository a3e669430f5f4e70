"""`lifelong cycles`, `lifelong audit`, and answers to a proposal."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from lifelong.commands.common import open_store
from lifelong_core.configuration.policy_fields import Mode
from lifelong_core.deploy import AdaptationPolicy, LabeledLogits, adapt
from lifelong_core.store import Cycle, new_prediction_id, register_calibration
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
Run = Callable[..., str]


def draw(*counts: int) -> LabeledLogits:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([0, 1], counts))
    return LabeledLogits(2 * np.eye(2)[labels] + rng.normal(size=(labels.size, 2)), labels)


@pytest.fixture
def run(installed: Run) -> Run:
    """An installation with one model and three cycles: kept, would swap, and proposes a swap."""
    with open_store() as store:
        store.tasks.add("triage", ["benign", "malignant"], [[0, 1], [5, 0]], actor="tests")
        model = store.models.add("triage", "net", kind="external", actor="tests")
        data = draw(300, 300)
        head = register_calibration(store, model.reference, data, actor="tests").head
        modes: list[tuple[Mode, str, tuple[int, int]]] = [
            ("auto", "clinic-a", (300, 300)),
            ("shadow", "clinic-a", (950, 50)),
            ("propose", "clinic-b", (950, 50)),
        ]
        for hour, (mode, environment, counts) in enumerate(modes):
            store.environments.ensure(environment, limit=9)
            report = adapt(data, draw(*counts).logits, head, AdaptationPolicy(mode=mode))
            at = NOON + timedelta(hours=hour)
            cycle = Cycle(
                id=new_prediction_id(),
                model_id=model.id,
                environment=environment,
                due_at=at,
                started_at=at,
                finished_at=at,
                outcome=report.outcome,
                report={
                    **report.to_document(),
                    "inputs": {"quantifier": "auto", "calibration_set": 1, "clocks": ["It is behind."]},
                },
                window_samples=report.samples,
                log_position=hour,
                head_version=1,
                published_version=None,
            )
            store.cycles.finish(cycle, candidate=report.candidate, expected_sequence=None, mode=mode)
    return installed


def ids(run: Run, *options: str) -> list[str]:
    return [cycle["id"] for cycle in json.loads(run("cycles", "list", "--json", *options))]


def test_cycles_are_listed_newest_first_with_what_they_did(run: Run) -> None:
    _, *lines = run("cycles", "list").splitlines()
    assert [
        next(word for word in ("proposes a swap", "would swap", "keep") if word in line) for line in lines
    ] == ["proposes a swap", "would swap", "keep"]
    assert "2026-11-01 14:00Z" in lines[0]
    assert "clinic-b" in lines[0]
    proposed, shadowed, kept = ids(run)
    assert ids(run, "--environment", "clinic-a") == [shadowed, kept]
    assert ids(run, "--outcome", "swap") == [proposed, shadowed]
    assert ids(run, "--outcome", "swap", "--model", "net", "--limit", "1") == [proposed]
    assert "clinic-a" not in run("cycles", "list", "--environment", "clinic-a")
    assert run("cycles", "list", "--outcome", "refuse").startswith("No such cycle")
    with pytest.raises(InvalidInputError, match="the name is empty"):
        run("cycles", "list", "--environment", "")


def test_listed_cycles_fit_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("cycles", "list").splitlines()
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80


def test_one_cycle_is_shown_by_the_beginning_of_its_id(run: Run) -> None:
    proposed, shadowed, kept = ids(run)
    (short,) = [line.split()[0] for line in run("cycles", "list").splitlines() if "would swap" in line]
    assert shadowed.startswith(short)
    shown = run("cycles", "show", short)
    assert shown.splitlines()[:3] == [
        shadowed,
        "net@1 in clinic-a, due 2026-11-01T13:00:00+00:00",
        "would swap (1,000 samples)",
    ]
    assert "The prevalence has shifted" in shown
    assert "malignant" in shown
    assert "95 % interval" in shown
    assert "Only the prevalence has changed?" in shown
    assert "Expected cost of a decision" in shown
    assert "Expected log loss" in shown
    assert "Caution: It is behind." in shown
    assert "Nothing was published: the mode was shadow." in shown
    assert "It proposes a head" in run("cycles", "show", proposed.replace("-", "").upper()[:31])
    document = json.loads(run("cycles", "show", kept, "--json"))
    assert (document["id"], document["effect"], document["proposal"]) == (kept, "keep", None)
    assert document["report"]["policy"]["mode"] == "auto"


def test_a_beginning_must_name_one_cycle(run: Run) -> None:
    for given, error in (("0", InvalidInputError), ("net", InvalidInputError), ("ffff", NotFoundError)):
        for command in (("cycles", "show"), ("heads", "approve"), ("heads", "reject", "--reason", "no")):
            with pytest.raises(error, match="cycle") as refused:
                run(*command, given)
            assert refused.value.field == "cycle"  # type: ignore[attr-defined]


def test_a_rejected_proposal_is_closed_and_says_why(run: Run) -> None:
    proposed, *_ = ids(run)
    said = run("heads", "reject", proposed, "--reason", "the scanner is being tested")
    assert said == "Rejected: head 1 stays active in clinic-b.\n"
    assert run("heads", "proposals") == "Nothing is proposed.\n"
    assert "proposes a swap, rejected" in run("cycles", "list")
    shown = run("cycles", "show", proposed)
    assert "Its proposal was rejected by cli:" in shown
    assert ": the scanner is being tested" in shown
    with pytest.raises(ConflictError, match=r"rejected by cli:.*'the scanner is being tested'"):
        run("heads", "approve", proposed)
    entry, *_ = json.loads(run("audit", "--json"))
    assert (entry["action"], entry["subject"]) == ("cycles.reject", "net@1/clinic-b")
    assert entry["details"] == {"cycle": proposed, "reason": "the scanner is being tested"}


def test_the_audit_log_is_paged_and_searched(run: Run) -> None:
    everything = json.loads(run("audit", "--json"))
    assert [entry["id"] for entry in everything] == sorted((e["id"] for e in everything), reverse=True)
    newest, *others = everything
    assert json.loads(run("audit", "--json", "--before", str(newest["id"]))) == others
    assert json.loads(run("audit", "--json", "--limit", "1")) == [newest]
    of_heads = json.loads(run("audit", "--json", "--action", "heads"))
    assert {entry["action"] for entry in of_heads} == {"heads.publish"}
    assert json.loads(run("audit", "--json", "--action", "heads.publish")) == of_heads
    assert json.loads(run("audit", "--json", "--action", "head")) == []
    assert json.loads(run("audit", "--json", "--subject", "net@1/(default")) == of_heads
    assert run("audit", "--subject", "_") == "No such entry.\n"
    assert "heads.publish" in run("audit", "--action", "heads")


def test_all_commands_are_in_the_help_by_section(installed: Run) -> None:
    shown = installed("--help")
    titles = [line for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    sections = [
        "Models:",
        "Heads and cycles:",
        "Predictions and labels:",
        "Metrics:",
        "Related tasks:",
        "Training:",
        "Operation:",
    ]
    assert titles == ["Options:", "Start:", *sections]
    for name in ("demo", "cycles", "stability", "audit", "export", "settings", "upgrade"):
        assert f"\n  {name} " in shown
