"""The context of a cycle: time since the last swap, previous heads, and answers to proposals."""

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest
import sqlalchemy as sa

from lifelong_core.configuration.settings import PolicySettings, Settings
from lifelong_core.deploy import AdaptationContext, LabeledLogits
from lifelong_core.store import Activation, Model, Store, register_calibration
from lifelong_core.store.schema import tables
from lifelong_monitor.cycle.context import list_head_services
from lifelong_monitor.cycle.cycle import CycleResult, run_cycle
from lifelong_monitor.cycle.replay import replay
from lifelong_monitor.cycle.reports import report_of
from lifelong_monitor.cycle.text import format_cycle
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, DUE, MINUTE, SHIFTED, draw, predict


def at(
    hour: int, version: int, environment: str | None = "a", *, uses_default_head: bool = False
) -> Activation:
    moment = datetime(2026, 1, 1, hour, tzinfo=UTC)
    return Activation(
        model_id=1,
        environment=environment,
        sequence=hour,
        head_version=version,
        activated_at=moment,
        activated_by="ann",
        reason="publish",
        uses_default_head=uses_default_head,
    )


@pytest.mark.parametrize(
    ("own", "default", "expected"),
    [
        ([], [], []),
        ([], [at(1, 1, None)], [(1, 1)]),
        ([], [at(1, 1, None), at(2, 2, None)], [(1, 1), (2, 2)]),
        ([at(1, 7)], [], [(1, 7)]),
        # another default head does not matter to an environment with a head of its own
        ([at(2, 2)], [at(1, 1, None), at(3, 3, None)], [(1, 1), (2, 2)]),
        (
            [at(2, 2), at(4, 1, uses_default_head=True)],
            [at(1, 1, None), at(3, 3, None)],
            [(1, 1), (2, 2), (4, 3)],
        ),
        # back to the default head and a new one there
        (
            [at(2, 2), at(3, 1, uses_default_head=True)],
            [at(1, 1, None), at(4, 4, None)],
            [(1, 1), (2, 2), (3, 1), (4, 4)],
        ),
        ([at(2, 2), at(3, 3), at(4, 2)], [at(1, 1, None)], [(1, 1), (2, 2), (3, 3), (4, 2)]),
        # head 2 came when a clock was ahead
        ([at(5, 2), at(3, 3)], [at(1, 1, None)], [(1, 1), (5, 2), (5, 3)]),
    ],
)
def test_what_served_an_environment_when(
    own: list[Activation], default: list[Activation], expected: list[tuple[int, int]]
) -> None:
    assert [(one.since.hour, one.head_version) for one in list_head_services(own, default)] == expected


def run(
    store: Store, settings: Settings, model: Model, due_at: datetime = DUE, **policy: object
) -> CycleResult:
    changed = settings.model_copy(update={"policy": settings.policy.model_copy(update=policy)})
    return run_cycle(store, changed, model, "clinic", due_at)


def context(result: CycleResult) -> AdaptationContext:
    assert result.last is not None
    found = report_of(result.last).context
    assert found is not None
    return found


def codes(result: CycleResult) -> list[str]:
    assert result.last is not None
    return [reason.code for reason in report_of(result.last).reasons]


def test_a_population_whose_head_never_changed_has_no_past(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    found = context(run(store, settings, model))
    assert found == AdaptationContext()


def test_after_a_change_a_cycle_knows_since_when_and_what_was_before(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    assert run(store, settings, model).outcome == "swap"
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=3))
    result = run(store, settings, model, DUE + MINUTE)
    activation = store.heads.activations(model.reference, environment="clinic")[-1]
    elapsed = (result.last.started_at - activation.activated_at).total_seconds()
    assert context(result).seconds_since_swap == elapsed > 0
    assert np.array_equal(
        context(result).previous_prevalence, store.heads.get(model.reference, 1).head.assumed_prevalence
    )
    assert replay(store, result.last.id) == report_of(result.last)


def test_a_damaged_head_of_before_keeps_no_cycle_from_running(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    assert run(store, settings, model).outcome == "swap"
    first = sa.update(tables.heads).where(tables.heads.c.model_id == model.id, tables.heads.c.version == 1)
    with store.database.write() as connection:
        connection.execute(first.values(document="{"))
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=3))
    result = run(store, settings, model, DUE + MINUTE)
    assert result.outcome == "keep"
    found = context(result)
    assert found.seconds_since_swap is not None
    assert found.previous_prevalence is None
    assert replay(store, result.last.id) == report_of(result.last)


def test_no_swap_while_cooling_down(store: Store, settings: Settings, model: Model) -> None:
    head = store.heads.get(model.reference, 1).head
    store.heads.publish(model.reference, head, environment="clinic", actor="ann")
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    result = run(store, settings, model, cool_down_seconds=3600)
    assert result.outcome == "keep"
    assert "cooling_down" in codes(result)
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=3))
    assert run(store, settings, model, DUE + MINUTE, cool_down_seconds=0).outcome == "swap"


@pytest.mark.parametrize("place", ["clinic", None])
def test_a_pinned_population_is_judged_and_kept(
    store: Store, settings: Settings, model: Model, place: str | None
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    store.heads.pin(model.reference, environment=place, reason="under audit", actor="ann")
    result = run(store, settings, model)
    assert result.outcome == "keep"
    assert "head_pinned" in codes(result)
    report = report_of(result.last)
    assert np.abs(report.prevalence.prevalence - SHIFTED).sum() < 0.15
    assert report.evidence is not None
    assert replay(store, result.last.id) == report
    store.heads.unpin(model.reference, environment=place, actor="ann")
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=3))
    assert run(store, settings, model, DUE + MINUTE).outcome == "swap"


def test_a_pin_that_comes_while_a_cycle_runs_wins(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))

    def somebody_pins() -> bool:
        store.heads.pin(model.reference, environment="clinic", reason="under audit", actor="ann")
        return False

    result = run_cycle(store, settings, model, "clinic", DUE, stopping=somebody_pins)
    assert (result.outcome, result.succeeded_at) == ("skip", None)
    assert "under audit" in result.reason
    assert store.cycles.list() == []
    assert len(store.heads.list(model.reference)) == 1
    assert run(store, settings, model, DUE + MINUTE).outcome == "keep"


def test_a_proposal_is_published_by_a_person_only(store: Store, settings: Settings, model: Model) -> None:
    ids = predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    result = run(store, settings, model, mode="propose")
    assert result.outcome == "swap"
    assert (len(store.heads.list(model.reference)), result.last.published_version) == (1, None)
    assert store.cycles.proposals() == [result.last]
    line = format_cycle(result, CLASS_NAMES)
    assert f"Proposed; publish it with: lifelong heads approve {result.last.id}." in line
    assert line.startswith("proposes a swap. The prevalence has shifted")
    approved = store.cycles.approve(result.last.id, actor="ann")
    published = store.heads.get(model.reference, 2).head
    candidate = report_of(result.last).candidate
    assert published.digest == candidate.digest
    assert published.provenance["cycle"] == str(result.last.id)
    assert published.provenance["window"] == {"first": str(ids[0]), "last": str(ids[-1]), "samples": 600}
    assert replay(store, approved.id) == report_of(approved)


@pytest.mark.parametrize("mode", ["propose", "auto", "shadow"])
def test_what_a_person_rejected_is_not_wanted_again_while_the_head_stays(
    store: Store, settings: Settings, model: Model, mode: str
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    proposed = run(store, settings, model, mode="propose").last
    store.cycles.reject(proposed.id, reason="the scanner is being tested", actor="ann")
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=3))
    result = run(store, settings, model, DUE + MINUTE, mode=mode)
    assert (result.outcome, codes(result)[-1]) == ("keep", "proposal_rejected")
    assert store.cycles.proposals() == []
    assert replay(store, result.last.id) == report_of(result.last)
    # With another head in force it is another question.
    head = store.heads.get(model.reference, 1).head
    store.heads.publish(model.reference, head, environment="clinic", actor="ann")
    predict(store, model, "clinic", draw(SHIFTED, 300, seed=4))
    assert run(store, settings, model, DUE + 2 * MINUTE, mode=mode).outcome == "swap"


def test_another_shift_than_the_rejected_one_is_proposed(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    proposed = run(store, settings, model, mode="propose").last
    store.cycles.reject(proposed.id, reason="the scanner is being tested", actor="ann")
    predict(store, model, "clinic", draw(SHIFTED[::-1], 3000, seed=3))
    result = run(store, settings, model, DUE + MINUTE, mode="propose")
    assert result.outcome == "swap"
    assert store.cycles.proposals() == [result.last]


def test_in_shadow_mode_nothing_waits_and_nothing_changes(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=2))
    result = run(store, settings, model, mode="shadow")
    assert result.outcome == "swap"
    assert store.cycles.proposals() == []
    assert len(store.heads.list(model.reference)) == 1
    line = format_cycle(result, CLASS_NAMES)
    assert line.startswith("would swap. The prevalence has shifted")
    assert "Nothing is published in shadow mode." in line


def test_an_environment_is_judged_by_its_own_policy(store: Store, settings: Settings, model: Model) -> None:
    own = {"clinic": PolicySettings(mode="shadow")}
    changed = settings.model_copy(update={"environment_policies": own})
    for environment in ("clinic", "other"):
        predict(store, model, environment, draw(SHIFTED, 600, seed=2))
        result = run_cycle(store, changed, model, environment, DUE)
        assert result.last is not None
        assert report_of(result.last).policy.mode == ("shadow" if environment == "clinic" else "auto")
    assert [one.environment for one in store.heads.activations(model.reference, environment="other")] == [
        "other"
    ]
    assert store.heads.activations(model.reference, environment="clinic") == []


def test_the_assumed_label_errors_of_the_task_reach_its_cycles(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    sure = run_cycle(store, settings, model, "clinic", DUE)
    changed = settings.model_copy(update={"label_error_rate": 0.1})
    predict(store, model, "clinic", draw(BALANCED, 300, seed=3))
    careful = run_cycle(store, changed, model, "clinic", DUE + MINUTE)
    widths = []
    for result, rates in ((sure, ()), (careful, (0.1,) * len(BALANCED))):
        assert result.last is not None
        report = report_of(result.last)
        assert report.policy.label_error_rates == rates
        widths.append(float((report.prevalence.high - report.prevalence.low).min()))
    assert widths[1] > widths[0] + 0.05


def test_with_pooling_the_newest_estimates_of_the_other_environments_count(
    store: Store, settings: Settings, model: Model
) -> None:
    for seed, environment in enumerate(("site-b", "site-a", "clinic")):
        predict(store, model, environment, draw(BALANCED, 600, seed=seed))
    old = run_cycle(store, settings, model, "site-b", DUE)
    predict(store, model, "site-b", draw(BALANCED, 300, seed=7))
    newest = run_cycle(store, settings, model, "site-b", DUE + MINUTE)
    other = run_cycle(store, settings, model, "site-a", DUE)
    assert old.last is not None
    assert newest.last is not None
    assert other.last is not None
    result = run(store, settings, model, DUE + MINUTE, pooling=True)
    expected = tuple(report_of(one).prevalence for one in (other.last, newest.last))
    assert context(result).others == expected
    assert replay(store, result.last.id) == report_of(result.last)


def test_only_sound_estimates_are_pooled(store: Store, settings: Settings, model: Model) -> None:
    def other_scanner(prevalence: Sequence[float], seed: int) -> LabeledLogits:
        drawn = draw(prevalence, 600, seed=seed)
        return LabeledLogits(drawn.logits * 0.3, drawn.labels)

    reporting = PolicySettings(assumption_violated="report", minimum_gain=1.0, minimum_probability_gain=10)
    changed = settings.model_copy(update={"environment_policies": {"reports": reporting}})
    windows = {
        "clinic": draw(BALANCED, 600, seed=1),
        "sound": draw(BALANCED, 600, seed=2),
        "small": draw(BALANCED, 90, seed=3),
        "refused": other_scanner(SHIFTED, 4),
        "rejected": other_scanner(BALANCED, 5),
        "reports": other_scanner(SHIFTED, 6),
    }
    found = {}
    for environment, logits in windows.items():
        predict(store, model, environment, logits)
        if environment != "clinic":
            last = run_cycle(store, changed, model, environment, DUE).last
            assert last is not None
            found[environment] = report_of(last)
    assert [found[name].outcome for name in ("sound", "small", "refused", "reports")] == [
        "keep",
        "keep",
        "refuse",
        "keep",
    ]
    for name in ("refused", "reports"):
        test = found[name].assumption_test
        assert test.rejected
    assert all(report.prevalence is not None for report in found.values())
    assert context(run(store, settings, model, pooling=True)).others == (found["sound"].prevalence,)


def test_what_makes_an_estimate_less_certain_stands_in_the_log_line(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=2))
    assert "Caution" not in format_cycle(run(store, settings, model), CLASS_NAMES)
    register_calibration(store, model.reference, draw(BALANCED, 60, seed=1), actor="tests")
    predict(store, model, "clinic", draw(BALANCED, 300, seed=3))
    result = run(store, settings, model, DUE + MINUTE)
    line = format_cycle(result, CLASS_NAMES)
    assert result.last is not None
    estimate = report_of(result.last).prevalence
    assert estimate.cautions
    assert line.endswith("Caution: " + " ".join(estimate.cautions))


def test_estimates_older_than_the_window_are_not_pooled(
    store: Store, settings: Settings, model: Model
) -> None:
    for seed, environment in enumerate(("site-a", "clinic")):
        predict(store, model, environment, draw(BALANCED, 600, seed=seed))
    run_cycle(store, settings, model, "site-a", DUE - settings.window_age)
    assert len(context(run(store, settings, model, pooling=True)).others) == 1
    predict(store, model, "clinic", draw(BALANCED, 30, seed=5))
    assert context(run(store, settings, model, DUE + MINUTE, pooling=True)).others == ()
    predict(store, model, "clinic", draw(BALANCED, 30, seed=6))
    assert context(run(store, settings, model, DUE + 2 * MINUTE)).others == ()
