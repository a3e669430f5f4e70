"""Cycles, audit entries and affected decisions as JSON values or CSV, for the HTTP API and the command line."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TextIO

from lifelong_core.store.cycles.affected_counts import AffectedFigures
from lifelong_core.store.cycles.affected_decisions import AffectedList, AffectedPrediction
from lifelong_core.store.cycles.affected_periods import AffectedPeriod
from lifelong_core.store.log.identifiers import logged_at
from lifelong_core.values.csv_files import csv_writer

_COLUMNS: tuple[str, ...] = (
    "prediction_id",
    "logged_at",
    "head_version",
    "decision",
    "new_decision",
    "expected_cost",
    "group",
    "true_class",
)


def figures_document(figures: AffectedFigures) -> dict[str, Any]:
    """Counts of the affected and the excluded predictions of a period as JSON values; decisions are numbers."""
    counts = figures.counts
    return {
        "since": figures.since.isoformat(),
        "until": figures.until.isoformat(),
        "predictions": counts.predictions,
        "affected": counts.affected,
        "share": counts.share,
        "expected_cost": counts.expected_cost,
        "mean_cost": counts.mean_cost,
        "changes": [asdict(change) for change in counts.changes],
        "groups": figures.groups,
        "quarantined": figures.quarantined,
        "other_models": figures.other_models,
        "gone": figures.gone,
        "counted_at": figures.counted_at.isoformat(),
    }


def affected_document(listed: AffectedList, period: AffectedPeriod, model: str) -> dict[str, Any]:
    """A list of affected predictions with its figures; `model` is name@version."""
    activated_at, names = period.activated_at, period.head.decision_names
    return {
        "cycle": str(period.cycle_id),
        "model": model,
        "environment": period.environment,
        "head_version": period.head_version,
        "activated_at": None if activated_at is None else activated_at.isoformat(),
        "figures": figures_document(listed.figures),
        "decisions": list(names),
        "predictions": [
            {**_plain(one), "label": names[one.decision], "new_label": names[one.new_decision]}
            for one in listed.predictions
        ],
        "next": None if listed.next is None else str(listed.next),
    }


def write_csv(predictions: Iterable[AffectedPrediction], file: TextIO) -> None:
    """Write a line for each prediction: ids, hashes and numbers only."""
    write = csv_writer(file, _COLUMNS)
    for one in predictions:
        write(_plain(one).values())


def _plain(prediction: AffectedPrediction) -> dict[str, Any]:
    group = prediction.group_hash
    values = (
        str(prediction.id),
        logged_at(prediction.id).isoformat(timespec="milliseconds"),
        prediction.head_version,
        prediction.decision,
        prediction.new_decision,
        prediction.expected_cost,
        None if group is None else bytes(group).hex(),
        prediction.label,
    )
    return dict(zip(_COLUMNS, values, strict=True))
