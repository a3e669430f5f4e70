"""`lifelong models validate` and `report`: from files to jobs, and from their results to files and exit status."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lifelong.commands.common import open_store
from lifelong.commands.jobs import expect_monitor
from lifelong.commands.models import evaluations
from lifelong_core.deploy import LabeledLogits
from lifelong_core.design.validation.acceptance import AcceptanceThreshold
from lifelong_core.promotion import PromotionReport
from lifelong_core.store import Job, Store, register_calibration
from lifelong_core.values.errors import InvalidInputError, NotFoundError, UnavailableError
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.design.validations import recommending
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, COSTS, draw
from tests.unit.monitor.recommendations import attach


def finished(store: Store, job: Job, _: object) -> Job:
    """Do the work of a job as a monitor does."""
    claimed = store.jobs.claim("tests", lease_seconds=60)
    assert claimed is not None
    store.jobs.succeed(claimed, work_of(job.kind)(store, claimed))
    return store.jobs.get(job.id)


@pytest.fixture
def run(installed: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """The command line with two models of a task, and jobs that are done at once."""
    monkeypatch.setattr(evaluations, "expect_monitor", lambda _: None)
    monkeypatch.setattr(evaluations, "finish_job", finished)
    with open_store() as store:
        store.tasks.add("lesions", CLASS_NAMES, COSTS, actor="tests")
        for seed in (1, 2):
            made = store.models.add("lesions", "net", kind="external", actor="tests")
            register_calibration(store, made.reference, draw(BALANCED, 300, seed=seed), actor="tests")
        attach(store, AcceptanceThreshold(metric="TPR", class_index=0, value=0.3))
    return installed


def written(path: Path, **changes: Any) -> str:
    labelled = draw(BALANCED, 120, seed=7)
    noise = np.random.default_rng(3).normal(scale=2.0, size=labelled.logits.shape)
    arrays = {
        "logits": labelled.logits,
        "current_logits": (labelled.logits + noise).astype(np.float32),
        "labels": labelled.labels,
        "names": np.array([f"{row}.png" for row in range(120)]),
    } | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return str(path)


def test_a_report_is_printed_and_written(run: Callable[..., str], tmp_path: Path) -> None:
    data, page, result = written(tmp_path / "both.npz"), tmp_path / "page.html", tmp_path / "report.json"
    options = ("--replicates", "100", "--origin", "a test", "--html", str(page), "--output", str(result))
    text = run("models", "report", "net@2", "--data", data, *options)
    made = PromotionReport.from_json(result.read_text())
    assert (made.new.reference, made.current.reference, made.origin) == ("net@2", "net@1", "a test")
    for part in (made.verdict.headline, "net@2 against net@1", ".png: ", "Not known: ", "EC: Expected cost"):
        assert part in text
    assert "Promotion of" in page.read_text()
    assert run("models", "promote", "net@2").startswith("net@2 is promoted")


def test_a_report_against_the_promotion_has_an_exit_status_of_its_own(
    run: Callable[..., str], tmp_path: Path
) -> None:
    labelled = draw(BALANCED, 120, seed=7)
    data = written(tmp_path / "both.npz", logits=-labelled.logits, current_logits=labelled.logits, names=None)
    found = run("models", "report", "net@2", "--data", data, "--replicates", "100", "--json", status=3)
    assert json.loads(found)["verdict"]["advice"] == "reject"


def test_a_validation_is_what_promotion_asks_for(run: Callable[..., str], tmp_path: Path) -> None:
    data = written(tmp_path / "one.npz", current_logits=None, names=None)
    with pytest.raises(Exception, match="never validated"):
        run("models", "promote", "net@2")
    assert "net@2" in run("models", "validate", "net@2", "--data", data, "--replicates", "100")
    said = run("models", "promote", "net@2")
    assert said.startswith("net@2 is promoted")
    assert "Note: the default head of net@2 (version 1) still has another decision rule" in said
    assert "--refit-head" in said


def test_a_validation_takes_means_over_groups_and_prints_where_a_file_cannot_be_written(
    run: Callable[..., str], tmp_path: Path
) -> None:
    data = written(tmp_path / "one.npz", current_logits=None, names=None, groups=np.arange(120) // 10)
    page = tmp_path / "page.html"
    arguments = ("models", "validate", "net@2", "--data", data, "--replicates", "100")
    run(*arguments, "--aggregate", "by-group", "--html", str(page))
    assert "Mean over 12 groups" in page.read_text()
    page.unlink()
    with pytest.raises(InvalidInputError, match="cannot be written") as refused:
        run(*arguments, "--output", "/proc/result.json", "--html", str(page))
    assert refused.value.field == "--output"
    assert "TPR" in page.read_text()


def test_a_validation_with_members_has_uncertainty_aware_scores(
    run: Callable[..., str], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(80) % 2
    logits = (np.eye(2)[labels] * 2 + rng.normal(size=(80, 2))).astype(np.float32)
    members = {f"logits_{place}": logits + rng.normal(size=(80, 2)) for place in (1, 2)}
    np.savez(tmp_path / "two.npz", logits=logits, labels=labels, **members)
    with open_store() as store:
        store.tasks.add("binary", ["benign", "malignant"], [[0, 1], [1, 0]], actor="tests")
        made = store.models.add("binary", "two", kind="external", actor="tests")
        register_calibration(store, made.reference, LabeledLogits(logits, labels), actor="tests")
        store.recommendations.attach("binary", recommending("BA", number_of_classes=2), actor="tests")
    arguments = ("models", "validate", "two@1", "--data", str(tmp_path / "two.npz"), "--replicates", "100")
    text = run(*arguments, "--sigma", "0,0.3", "--damping", "0,5")
    for part in ("Uncertainty-aware scores of malignant", "over 2 members", "d from 0 to 5, sigma = 0"):
        assert part in text
    with pytest.raises(InvalidInputError) as refused:
        run(*arguments, "--uncertainty-threshold", "1")
    assert refused.value.field == "--uncertainty-threshold"


def test_what_does_not_fit_is_refused(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = written(tmp_path / "one.npz", current_logits=None, names=None)
    with pytest.raises(InvalidInputError, match=r"one\.npz.*lacks"):
        run("models", "report", "net@2", "--data", one)
    with pytest.raises(NotFoundError, match="not trained here"):
        run("models", "report", "net@2")
    with pytest.raises(NotFoundError):
        run("models", "report", "nothing@1", "--data", one)
    monkeypatch.setattr(evaluations, "expect_monitor", expect_monitor)
    both = written(tmp_path / "both.npz")
    with pytest.raises(UnavailableError, match="no monitor runs"):
        run("models", "report", "net@2", "--data", both)
