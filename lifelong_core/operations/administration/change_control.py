"""The change-control dossier and the periodic report of a population, from the log."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import AwareDatetime, Field

from lifelong_core.configuration.policy_fields import PolicyFields
from lifelong_core.entities.access import Scope
from lifelong_core.entities.change_control import (
    AuditProof,
    DeclinedChange,
    Dossier,
    EstimatedDay,
    PeriodReport,
    PolicyPeriod,
    PolicyRule,
    RealisedHead,
    ServedDay,
)
from lifelong_core.entities.cycles import Cycle
from lifelong_core.entities.performance import METRICS
from lifelong_core.entities.registry import Model
from lifelong_core.operations.administration.head_changes import changes_of, reasons_of, undamaged_heads
from lifelong_core.operations.operation import Call, Context, ModelReference, operation
from lifelong_core.store import Store
from lifelong_core.store.access.audit_chain import GENESIS, Anchor
from lifelong_core.store.cycles.periods import Period
from lifelong_core.store.engine.clock import midnight
from lifelong_core.values.errors import InvalidInputError

MOST_DECLINED = 200
"""Largest number of declined changes in a dossier."""
MOST_PREDICTIONS = 300_000
"""Largest number of predictions that a request counts; takes about 1 s."""
MOST_LABELS = 50_000
"""Largest number of labelled predictions that a report judges, the newest."""
MOST_ENTRIES = 10_000
"""Largest number of entries of the audit log that a request verifies or lists."""
CONFIDENCE = 0.95
EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
"""Beginning of a dossier about everything."""
LATEST = datetime(2100, 1, 1, tzinfo=UTC)

Since: TypeAlias = Annotated[AwareDatetime, Field(description="Beginning of the period.")]
Until: TypeAlias = Annotated[
    AwareDatetime,
    Field(description="End of the period, exclusive. A fixed time gives the same document again."),
]
Month: TypeAlias = Annotated[
    str, Field(pattern=r"^20\d\d-(0[1-9]|1[0-2])$", description="A month in UTC, such as 2026-10.")
]


class ShowDossier(Call[Dossier]):
    """A population and a period."""

    model: ModelReference
    environment: str
    since: Since
    until: Until


class ShowReport(Call[PeriodReport]):
    """A population and a month."""

    model: ModelReference
    environment: str
    month: Month


@operation(
    "GET",
    "/v1/admin/populations/{model}/{environment}/dossier",
    scope=Scope.READ,
    example=ShowDossier(
        model="resnet",
        environment="clinic-c",
        since=datetime(2026, 1, 1, tzinfo=UTC),
        until=datetime(2026, 2, 1, tzinfo=UTC),
    ),
    is_strict=True,
)
def show_dossier(context: Context, call: ShowDossier) -> Dossier:
    """The change-control dossier: what may change by itself, its limits, and the record of every change.

    Each change comes with its inputs, the evidence, who approved it, and its effect on earlier decisions. The entries
    of the audit log about the population are listed and their hash chain is verified. Equal logs give equal answers.
    """
    store = context.store
    periods = store.population_periods
    model, period = _period(store, call, call.since, call.until)
    declined, more = periods.declined(period, limit=MOST_DECLINED)
    return Dossier(
        **_common(context, model, period),
        policies=[
            PolicyPeriod(
                since=used.first, until=used.last, cycles=used.cycles, rules=policy_rules(used.document)
            )
            for used in periods.policies(period)
        ],
        declined=[_declined(cycle, period.until) for cycle in declined],
        more_declined=more,
    )


@operation(
    "GET",
    "/v1/admin/populations/{model}/{environment}/reports/{month}",
    scope=Scope.READ,
    example=ShowReport(model="resnet", environment="clinic-c", month="2026-01"),
)
def show_report(context: Context, call: ShowReport) -> PeriodReport:
    """The periodic report: what was served, how the prevalence moved, what changed, and how good the decisions were.

    Estimated figures are those of the cycles, without labels; realised figures are of the predictions of the period
    that have a label by now, at most the newest 50,000. Equal logs give equal answers.
    """
    store = context.store
    periods = store.population_periods
    model, period = _period(store, call, *_month(call.month))
    if not context.may_take_long:
        counted = periods.count_predictions(period, limit=MOST_PREDICTIONS + 1)
        if counted > MOST_PREDICTIONS:
            raise InvalidInputError(
                f"the month holds more than {MOST_PREDICTIONS:,} predictions, the most that a request counts.",
                field="month",
                hint="Run `lifelong report` on the host.",
            )
    common = _common(context, model, period)
    numbers = len(common["class_names"]) + 1
    return PeriodReport(
        **common,
        served=[
            ServedDay(day=midnight(day), decisions=[counts.get(place, 0) for place in range(numbers)])
            for day, counts in periods.decisions(period).items()
        ],
        windows=periods.daily_windows(period),
        estimated=[
            EstimatedDay(
                day=midnight(one.day),
                head_version=one.head_version,
                metrics={
                    name: one.estimate.estimates[name] for name in METRICS if name in one.estimate.estimates
                },
            )
            for one in store.performance.daily_estimates(
                model.id, period.environment, since=period.since, until=period.until
            )
        ],
        realised=_realised(context, model, period, common["task"], common["class_names"]),
    )


def policy_rules(document: Mapping[str, Any]) -> list[PolicyRule]:
    """The fields of a policy in a report, in the order and with the meaning of the settings."""
    return [
        PolicyRule(name=field.name, value=_text(document[field.name]), meaning=field.metadata["meaning"])
        for field in fields(PolicyFields)
        if field.name in document
    ]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _month(text: str) -> tuple[datetime, datetime]:
    """Beginning and end of a month in UTC."""
    year, month = map(int, text.split("-"))
    return datetime(year, month, 1, tzinfo=UTC), datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)


def _period(
    store: Store, call: ShowDossier | ShowReport, since: datetime, until: datetime
) -> tuple[Model, Period]:
    for field, moment in (("since", since), ("until", until)):
        if not EARLIEST <= moment <= LATEST:
            raise InvalidInputError("expected a time in the years 2000 to 2099.", field=field)
    if until <= since:
        raise InvalidInputError("expected a time after `since`.", field="until")
    model, environment = store.models.get(call.model), store.environments.get(call.environment)
    return model, Period(model.id, environment.name, since.astimezone(UTC), until.astimezone(UTC))


def _common(context: Context, model: Model, period: Period) -> dict[str, Any]:
    """The fields of a PopulationPeriod."""
    store = context.store
    task = store.tasks.with_id(model.task_id)
    return {
        "model": model.reference,
        "environment": period.environment,
        "task": task.name,
        "class_names": list(task.class_names),
        "since": period.since,
        "until": period.until,
        "cycles": store.population_periods.effects(period),
        "changes": changes_of(store, model, period, task.class_names),
        "audit": _audit(store, model, period, newest_only=None if context.may_take_long else MOST_ENTRIES),
    }


def _declined(cycle: Cycle, until: datetime) -> DeclinedChange:
    """What became of a cycle up to the end of the period."""
    rejection = cycle.rejection if cycle.rejection and cycle.rejection.rejected_at < until else None
    if cycle.outcome == "refuse":
        kind = "refused"
    elif rejection is not None:
        kind = "rejected"
    else:
        kind = "shadow" if cycle.proposal is None else "proposed"
    return DeclinedChange(
        at=cycle.finished_at,
        cycle=cycle.id,
        kind=kind,
        reasons=reasons_of(cycle) if rejection is None else [*reasons_of(cycle), rejection.reason],
        by=None if rejection is None else rejection.rejected_by,
    )


def _audit(store: Store, model: Model, period: Period, *, newest_only: int | None) -> AuditProof:
    """The entries about the population and its model, and the state of the whole log before the end of the period."""
    newest = store.audit.list(1, until=period.until)
    anchor = Anchor(newest[0].id, newest[0].digest) if newest else Anchor(0, GENESIS)
    subjects = {model.reference, f"{model.reference}/{period.environment}"}
    listed = store.audit.list(
        MOST_ENTRIES + 1, subjects=subjects, since=period.since, until=period.until, kind="changes"
    )
    verified = store.audit.verify(newest_only=newest_only)
    last = 0 if verified.newest is None else verified.newest.sequence
    first = 1 if newest_only is None else max(1, last - newest_only + 1)
    return AuditProof(
        entries=listed[MOST_ENTRIES - 1 :: -1],
        has_more=len(listed) > MOST_ENTRIES,
        newest=anchor.sequence,
        digest=anchor.digest,
        verified_from=first if first <= anchor.sequence else None,
        faults=[fault.text for fault in verified.faults if fault.first <= anchor.sequence],
    )


def _realised(
    context: Context, model: Model, period: Period, task: str, class_names: Sequence[str]
) -> list[RealisedHead]:
    """Figures of the labelled predictions by head version; heads that cannot be read are left out."""
    # Loads the metrics, which serving does not need.
    from lifelong_core.store.performance.realised import realised_figures

    store = context.store
    rates = list(context.settings.label_error_rates(task, class_names).values())
    labelled = store.labels.newest_labelled(
        model.id,
        period.environment,
        limit=MOST_LABELS,
        classes=len(class_names),
        since=period.since,
        until=period.until,
    )
    error_rates = rates if any(rates) else None
    found: list[RealisedHead] = []
    versions: list[int] = np.unique(labelled.head_versions).tolist()
    for version, record in sorted(undamaged_heads(store, model, versions).items()):
        rows = np.flatnonzero(labelled.head_versions == version)
        figures = realised_figures(
            labelled, rows, record.head.costs, error_rates=error_rates, confidence=CONFIDENCE
        )
        if figures is not None:
            found.append(
                RealisedHead(head_version=version, samples=figures.samples, metrics=dict(figures.metrics))
            )
    return found
