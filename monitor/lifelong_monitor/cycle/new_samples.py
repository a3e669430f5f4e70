"""Inputs of the sequential test: the evidence so far, and the samples since, each once."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy import ShiftEvidence
from lifelong_core.entities.cycles import Cycle
from lifelong_core.store import Store
from lifelong_core.store.log.records import Window
from lifelong_core.values.arrays import Logits
from lifelong_core.values.errors import NotFoundError
from lifelong_monitor.cycle.reports import Base, Inputs, inputs_of, readable_report_of, report_of

Bucket: TypeAlias = tuple[Logits, NDArray[np.generic] | None]


@dataclass(frozen=True)
class NewSamples:
    """The arguments of `adapt` for the sequential test, and what the cycle records of them."""

    evidence: ShiftEvidence | None
    buckets: tuple[Bucket, ...]
    inputs: Inputs


def collect_new_samples(
    store: Store,
    model_id: int,
    environment: str,
    *,
    log_position: int,
    classes: int,
    first: Callable[[], Window],
    before: Cycle | None,
    inputs: Inputs,
) -> NewSamples:
    """Continue where the evidence of the population stands.

    The new samples are those that appeared in the log since the cycle that gathered last, however late they were
    committed and whatever cycles were skipped since. Without such a cycle the watch begins with the window itself.

    Args:
        store: holds the log.
        model_id: of the population.
        environment: of the population.
        log_position: up to which the cycle reads.
        classes: of the model.
        first: the first samples of the watch: the window, or its newest samples where it is very large.
        before: the cycle of the population that read furthest in the log.
        inputs: of the cycle; `limit` bounds the new samples, of more the newest are taken; evidence with other
            `head_changes` is not continued.
    """
    base = _standing(before)
    if base is None:
        new = first()
    else:
        new = store.predictions.between(
            model_id, environment, base.log_position, log_position, limit=inputs.limit, classes=classes
        )
    recorded = replace(inputs, base=base, new_samples=len(new.ids), new_digest=_digest(new.ids))
    return NewSamples(_continued(store, recorded), _buckets(new), recorded)


def recollect_new_samples(
    store: Store, cycle: Cycle, *, classes: int, first: Callable[[], Window]
) -> NewSamples:
    """Collect again the new samples of a past cycle, for a replay.

    Args:
        store: holds the log.
        cycle: the past cycle.
        classes: of the model; None: no row was left out.
        first: the samples with which the watch began, if it began with this cycle.

    Raises:
        NotFoundError: the log does not hold these samples any more.
        InvalidInputError: the cycle that gathered before is not readable.
    """
    inputs = inputs_of(cycle)
    if inputs.base is None:
        # The first version of the product gave its cycles no samples for a sequential test.
        return NewSamples(None, _buckets(first()) if inputs.limit else (), inputs)
    new = store.predictions.between(
        cycle.model_id,
        cycle.environment,
        inputs.base.log_position,
        cycle.log_position,
        limit=inputs.limit,
        classes=classes,
    )
    if _digest(new.ids) != inputs.new_digest:
        raise NotFoundError(
            f"the log does not hold the {inputs.new_samples} new predictions of this cycle any more.",
            field="cycle",
            hint="Some were deleted since; newer cycles can be replayed.",
        )
    return NewSamples(_continued(store, inputs), _buckets(new), inputs)


def _standing(before: Cycle | None) -> Base | None:
    """The previous cycle, or that on which it was based if it gathered no evidence."""
    report = None if before is None else readable_report_of(before)
    if before is None or report is None:
        return None
    return inputs_of(before).base if report.evidence is None else Base(before.id, before.log_position)


def _continued(store: Store, inputs: Inputs) -> ShiftEvidence | None:
    """Evidence of the base; under no key if another head was in force since, so that it starts anew."""
    if inputs.base is None:
        return None
    base = store.cycles.get(inputs.base.cycle)
    evidence, changes = report_of(base).evidence, inputs_of(base).head_changes
    if evidence is None or changes == inputs.head_changes:
        return evidence
    return replace(evidence, key="")


def _buckets(new: Window) -> tuple[Bucket, ...]:
    return ((new.logits, new.groups),) if new.ids else ()


def _digest(ids: Sequence[UUID]) -> str:
    return hashlib.sha256(b"".join(one.bytes for one in ids)).hexdigest()
