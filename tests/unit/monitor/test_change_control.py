"""The documents about a population after a swap by a monitor: complete, equal for equal logs, on both databases."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
import sqlalchemy as sa

from lifelong_core.change_control.pages import dossier_html, report_html
from lifelong_core.change_control.pdf import drawing_style, to_pdf
from lifelong_core.configuration.settings import Settings
from lifelong_core.entities.change_control import Dossier, PeriodReport
from lifelong_core.operations.administration import change_control
from lifelong_core.operations.administration.change_control import (
    EARLIEST,
    ShowDossier,
    ShowReport,
    policy_rules,
)
from lifelong_core.operations.operation import Context
from lifelong_core.store import Model, NewLabel, Store, register_calibration
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import InvalidInputError
from lifelong_monitor.cycle.due_times import due_before
from lifelong_monitor.exporter.exporter import Exporter
from lifelong_monitor.schedule.tick import Ticker
from tests.unit.monitor.population import MINUTE, SHIFTED, draw, on_both_databases, predict
from tests.unit.store.samples import cycle

DRAWN = draw(SHIFTED, 600, seed=3)


@pytest.fixture
def swapped(store: Store, model: Model, ticker: Ticker) -> Model:
    """After a swap, the count of the decisions that it affects, a roll-back and 300 labels."""
    ids = predict(store, model, "clinic", DRAWN)
    now = datetime.now(UTC)
    for after in (timedelta(), timedelta(minutes=10)):
        ticker.tick(now + after, due_before(now, MINUTE))
    store.heads.rollback(model.reference, environment="clinic", actor="ann")
    labels = [NewLabel(one, int(label)) for one, label in zip(ids[:300], DRAWN.labels[:300], strict=True)]
    store.labels.record(labels, actor="dr-okafor")
    return model


def context(store: Store, settings: Settings, *, may_take_long: bool = True) -> Context:
    return Context(store, settings, "tests", 0, may_take_long=may_take_long)


def shown_dossier(store: Store, settings: Settings, until: datetime | None = None) -> Dossier:
    end = until or datetime.now(UTC) + timedelta(seconds=1)
    call = ShowDossier(model="lesions", environment="clinic", since=EARLIEST, until=end)
    return change_control.show_dossier(context(store, settings), call)


def shown_report(store: Store, settings: Settings, month: str | None = None) -> PeriodReport:
    call = ShowReport(model="lesions", environment="clinic", month=month or f"{datetime.now(UTC):%Y-%m}")
    return change_control.show_report(context(store, settings), call)


@on_both_databases
def test_the_dossier_holds_every_change_with_evidence_approver_and_effect(
    store: Store, settings: Settings, swapped: Model
) -> None:
    dossier = shown_dossier(store, settings)
    (cycle,) = store.cycles.list()
    default, swap, undone = dossier.changes
    assert (default.is_default_head, default.decision, default.by) == (True, "by a person", "tests")
    assert (swap.reason, swap.decision, swap.by, swap.cycle) == ("swap", "automatic", "monitor", cycle.id)
    assert [share.estimated and share.estimated.value for share in swap.shares] == (
        cycle.report["prevalence"]["prevalence"]
    )
    assert [share.assumed for share in swap.shares] == pytest.approx([1 / 3] * 3)
    assert swap.digest == store.heads.get("lesions@1", 2).digest
    assert swap.reasons == [reason["text"] for reason in cycle.report["reasons"]]
    assert any("only the prevalence has changed" in text for text in swap.verification)
    assert swap.affected is not None
    assert swap.affected.predictions == 600
    assert (undone.reason, undone.by, undone.head_version) == ("rollback", "ann", 1)
    assert dossier.cycles == {"swap": 1}
    assert [used.cycles for used in dossier.policies] == [1]
    assert dossier.declined == []
    html = dossier_html(dossier)
    assert all(str(text) in html for text in (cycle.id, swap.digest, "ann", "minimum_gain"))


def test_equal_logs_give_equal_documents_whatever_happens_after_the_period(
    store: Store, settings: Settings, swapped: Model
) -> None:
    until = datetime.now(UTC)
    first = dossier_html(shown_dossier(store, settings, until))
    store.heads.pin(swapped.reference, environment="clinic", reason="audit", actor="ann")
    assert dossier_html(shown_dossier(store, settings, until)) == first
    assert dossier_html(shown_dossier(store, settings)) != first


def test_the_policy_is_written_with_values_and_meanings(
    store: Store, settings: Settings, swapped: Model
) -> None:
    rules = {rule.name: rule for rule in shown_dossier(store, settings).policies[0].rules}
    assert rules["unusual_traffic"].value == "report"
    assert rules["average_run_length"].value == "175200"
    assert all(rule.meaning.endswith(".") for rule in rules.values())
    assert [rule.name for rule in policy_rules({"pooling": True, "unknown": 1})] == ["pooling"]


def test_a_changed_entry_of_the_audit_log_is_named(store: Store, settings: Settings, swapped: Model) -> None:
    sound = shown_dossier(store, settings).audit
    assert sound.faults == []
    assert sound.digest == store.audit.list(1)[0].digest
    with store.database.write() as connection:
        forged = sa.update(tables.audit).where(tables.audit.c.action == "heads.rollback")
        connection.execute(forged.values(actor="bob"))
    faults = shown_dossier(store, settings).audit.faults
    assert len(faults) == 1
    assert "not as it was written" in dossier_html(shown_dossier(store, settings))


def test_proposals_that_a_person_approved_or_rejected_are_told_apart(
    store: Store, settings: Settings, model: Model, exporter: Exporter
) -> None:
    asking = settings.model_copy(update={"policy": settings.policy.model_copy(update={"mode": "propose"})})
    now = datetime.now(UTC)
    for environment in ("clinic", "other"):
        predict(store, model, environment, DRAWN)
    Ticker(store, asking, exporter).tick(now, due_before(now, MINUTE))
    approved, rejected = sorted(store.cycles.list(), key=lambda cycle: cycle.environment)
    store.cycles.approve(approved.id, actor="ann")
    store.cycles.reject(rejected.id, reason="a bad batch", actor="bob")
    swap = shown_dossier(store, settings).changes[-1]
    assert (swap.decision, swap.by, swap.cycle) == ("approved", "ann", approved.id)
    call = ShowDossier(model="lesions", environment="other", since=EARLIEST, until=now + timedelta(minutes=5))
    (declined,) = change_control.show_dossier(context(store, settings), call).declined
    assert (declined.kind, declined.by, declined.reasons[-1]) == ("rejected", "bob", "a bad batch")


@on_both_databases
def test_the_report_counts_decisions_and_judges_labels(
    store: Store, settings: Settings, swapped: Model
) -> None:
    report = shown_report(store, settings)
    decisions = [sum(day.decisions[place] for day in report.served) for place in range(4)]
    assert sum(decisions) == 600
    assert decisions[3] == 0
    (realised,) = report.realised
    served = store.heads.get("lesions@1", 1).head.apply(DRAWN.logits[:300]).decisions
    assert realised.samples == 300
    assert realised.metrics["AC"].value == pytest.approx(float((served == DRAWN.labels[:300]).mean()))
    assert len(report.windows) == 1
    assert report.windows[0].published_version == 2
    html = report_html(report)
    assert html.count("<figure") >= 4
    assert "Prevalence of malignant" in html
    assert [set(day.metrics) for day in report.estimated] == [{"AC", "EC"}]
    long_ago = shown_report(store, settings, "2020-01")
    assert (long_ago.served, long_ago.windows, long_ago.estimated) == ([], [], [])
    assert "No prediction." in report_html(shown_report(store, settings, "2020-01"))


@on_both_databases
def test_what_people_decide_later_does_not_change_a_past_period(
    store: Store, settings: Settings, model: Model, exporter: Exporter
) -> None:
    asking = settings.model_copy(update={"policy": settings.policy.model_copy(update={"mode": "propose"})})
    now = datetime.now(UTC)
    for environment in ("clinic", "other"):
        predict(store, model, environment, DRAWN)
    Ticker(store, asking, exporter).tick(now, due_before(now, MINUTE))
    until = datetime.now(UTC)
    calls = [
        ShowDossier(model="lesions", environment=environment, since=EARLIEST, until=until)
        for environment in ("clinic", "other")
    ]
    before = [dossier_html(change_control.show_dossier(context(store, settings), call)) for call in calls]
    assert all("1 proposed a swap" in page for page in before)
    first, second = sorted(store.cycles.list(), key=lambda cycle: cycle.environment)
    store.cycles.approve(first.id, actor="ann")
    store.cycles.reject(second.id, reason="a bad batch", actor="bob")
    after = [dossier_html(change_control.show_dossier(context(store, settings), call)) for call in calls]
    assert after == before


@on_both_databases
def test_each_run_of_cycles_with_one_policy_is_a_period_of_its_own(
    store: Store, settings: Settings, model: Model
) -> None:
    start = datetime(2026, 3, 1, tzinfo=UTC)
    for hour, gain in enumerate([0.1, 0.1, 0.2, 0.1]):
        at = start + timedelta(hours=hour)
        one = cycle(model, due_at=at)
        report = {"policy": {"minimum_gain": gain}}
        recorded = replace(one, environment="clinic", report=report, log_position=hour)
        store.cycles.finish(recorded, candidate=None, expected_sequence=None)
    store.environments.ensure("clinic", limit=9)
    used = shown_dossier(store, settings).policies
    assert [(one.cycles, one.rules[0].value) for one in used] == [(2, "0.1"), (1, "0.2"), (1, "0.1")]
    assert [(one.since.hour, one.until.hour) for one in used] == [(0, 1), (2, 2), (3, 3)]


def test_a_default_head_counts_where_the_environment_returned_to_it(
    store: Store, settings: Settings, swapped: Model
) -> None:
    assert shown_dossier(store, settings).changes[-1].is_default_head
    register_calibration(store, swapped.reference, draw(SHIFTED, 600, seed=9), actor="eve")
    last = shown_dossier(store, settings).changes[-1]
    assert (last.by, last.is_default_head, last.reason) == ("eve", True, "publish")


def test_a_service_claims_no_more_than_it_verified(
    store: Store, settings: Settings, swapped: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    until = datetime.now(UTC)
    monkeypatch.setattr(change_control, "MOST_ENTRIES", 2)
    call = ShowDossier(model="lesions", environment="clinic", since=EARLIEST, until=until)
    proof = change_control.show_dossier(context(store, settings, may_take_long=False), call).audit
    assert (proof.verified_from, proof.has_more, len(proof.entries)) == (proof.newest - 1, True, 2)
    for number in range(2):
        store.tasks.add(f"later-{number}", ("a", "b"), [[0, 1], [1, 0]], actor="tests")
    dossier = change_control.show_dossier(context(store, settings, may_take_long=False), call)
    assert dossier.audit.verified_from is None
    assert "Not verified" in dossier_html(dossier)


def test_realised_figures_allow_for_wrong_labels(store: Store, settings: Settings, swapped: Model) -> None:
    def interval(error_rate: float) -> tuple[float, float]:
        stated = settings.model_copy(update={"label_error_rate": error_rate})
        (realised,) = shown_report(store, stated).realised
        return realised.metrics["AC"].low, realised.metrics["AC"].high

    (low, high), (lower, higher) = interval(0.0), interval(0.1)
    assert lower < low < high < higher


def test_a_request_counts_no_more_than_it_may(
    store: Store, settings: Settings, swapped: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change_control, "MOST_PREDICTIONS", 599)
    call = ShowReport(model="lesions", environment="clinic", month=f"{datetime.now(UTC):%Y-%m}")
    with pytest.raises(InvalidInputError, match="more than 599 predictions"):
        change_control.show_report(context(store, settings, may_take_long=False), call)


def test_an_empty_period_is_refused(store: Store, settings: Settings, swapped: Model) -> None:
    with pytest.raises(InvalidInputError, match="after `since`"):
        shown_dossier(store, settings, EARLIEST)


def test_a_pdf_is_the_same_twice_and_its_drawings_have_colours(
    store: Store, settings: Settings, swapped: Model
) -> None:
    html = report_html(shown_report(store, settings))
    pdf = to_pdf(html)
    assert pdf.startswith(b"%PDF")
    assert to_pdf(html) == pdf
    style = drawing_style()
    assert "var(" not in style
    assert re.search(r"\.series-1 \.line, \.series-1\.line \{[^}]*stroke: #[0-9a-f]{6}", style)
    ElementTree.fromstring(f"<style>{style}</style>")
