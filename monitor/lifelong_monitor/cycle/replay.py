"""Judges the window of a past cycle again, and compares two reports field by field."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias, cast
from uuid import UUID

from lifelong_core.deploy import AdaptationReport, adapt
from lifelong_core.store import Store
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.cycle.estimates import judge_acceptance, keys_of
from lifelong_monitor.cycle.new_samples import recollect_new_samples
from lifelong_monitor.cycle.reports import inputs_of, report_of
from lifelong_monitor.cycle.subject import FittedQuantifiers
from lifelong_monitor.cycle.window import judge_window, reload_window

JSON: TypeAlias = Any
"""A JSON value."""

SUM_TOLERANCE = 1e-9
"""Relative and absolute: sums over the rows of a window that were added in another order agree to this."""
_DIGESTS_OF_SUMS = frozenset({"window_digest", "digest"})
"""Fields that hash sums to the last bit."""


def replay(store: Store, cycle_id: UUID) -> AdaptationReport:
    """Judge the window of a past cycle again from what is stored; equal to the report that the cycle recorded.

    Where the window was made of summaries, these are made again from the rows: they are equal in all counts, and all
    figures to rounding (1e-9).

    Raises:
        NotFoundError: there is no such cycle, or what it looked at is not stored any more.
        InvalidInputError: its report is in a form that this version cannot read.
    """
    cycle = store.cycles.get(cycle_id)
    registry = store.registry()
    if cycle.model_id not in registry.models:
        raise NotFoundError("the model of this cycle is gone.", field="cycle")
    model = registry.models[cycle.model_id]
    recorded, inputs = report_of(cycle), inputs_of(cycle)
    names = registry.tasks[model.task_id].class_names
    fitted = FittedQuantifiers().get(store, model, inputs.calibration_set, inputs.quantifier)
    taken = reload_window(store, cycle, inputs, fitted, classes=len(names))
    gathered = recollect_new_samples(store, cycle, classes=len(names), first=taken.rows)
    report = adapt(
        fitted,
        taken.data,
        store.heads.get(model.reference, cycle.head_version).head,
        recorded.policy,
        new_buckets=gathered.buckets,
        evidence=gathered.evidence,
        context=recorded.context,
        groups=taken.groups,
        times=taken.times,
        method=inputs.quantifier,
        rng=recorded.seed,
        performance_metrics=keys_of(inputs.wanted),
    )
    if taken.hours is not None:
        # Compared already, by counts and to rounding: no digest of sums survives another order of adding.
        report = replace(report, window_digest=recorded.window_digest)
    if report.window_digest != recorded.window_digest:
        raise NotFoundError(
            "the log does not hold the predictions that this cycle looked at any more.",
            field="cycle",
            hint="Some were deleted since; newer cycles can be replayed.",
        )
    return judge_acceptance(judge_window(report, taken), inputs.wanted, names)


@dataclass(frozen=True)
class FieldDifference:
    """A field that differs; a part that one side lacks is None there."""

    field: str
    """path within the report, such as `prevalence.low.0`"""
    recorded: JSON
    replayed: JSON

    def to_document(self) -> dict[str, JSON]:
        """The difference as JSON values."""
        return asdict(self)


def compare_documents(
    recorded: JSON, replayed: JSON, *, tolerance: float = 0.0, path: str = ""
) -> Iterator[FieldDifference]:
    """Yield the fields in which two JSON documents differ, in the order of the fields.

    Args:
        recorded: JSON value.
        replayed: JSON value.
        tolerance: relative and absolute difference up to which numbers count as equal; with one above 0, digests of
            sums are not compared.
        path: field of the two values within their documents.

    Examples:
        >>> list(compare_documents({"a": [1, 2]}, {"a": [1, 3]}))
        [FieldDifference(field='a.1', recorded=2, replayed=3)]
    """
    if isinstance(recorded, Mapping) and isinstance(replayed, Mapping):
        left, right = cast("Mapping[str, JSON]", recorded), cast("Mapping[str, JSON]", replayed)
        for name in {**left, **right}:
            if tolerance and name in _DIGESTS_OF_SUMS:
                continue
            inner = f"{path}.{name}" if path else name
            yield from compare_documents(left.get(name), right.get(name), tolerance=tolerance, path=inner)
    elif isinstance(recorded, list) and isinstance(replayed, list) and len(recorded) == len(replayed):
        pairs = zip(cast("Sequence[JSON]", recorded), cast("Sequence[JSON]", replayed), strict=True)
        for index, (one, other) in enumerate(pairs):
            yield from compare_documents(one, other, tolerance=tolerance, path=f"{path}.{index}")
    elif not _are_equal(recorded, replayed, tolerance):
        yield FieldDifference(path, recorded, replayed)


def _are_equal(one: JSON, other: JSON, tolerance: float) -> bool:
    if _is_number(one) and _is_number(other):
        return one == other or math.isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
    return type(one) is type(other) and one == other


def _is_number(value: JSON) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
