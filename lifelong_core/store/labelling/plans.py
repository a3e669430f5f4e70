"""Writes and reads labelling plans; the newest KEPT of each population are kept."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from lifelong_core.deploy.documents import parse_document
from lifelong_core.entities.entity import read_kept
from lifelong_core.entities.labelling import (
    LabellingPlan,
    LabellingSample,
    NewPlan,
    PlanProgress,
    SampledPrediction,
)
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import Row, read_record
from lifelong_core.store.engine.documents import values_text
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.heads.heads import subject_of
from lifelong_core.store.labelling.samples import (
    count_progress,
    delete_samples,
    read_samples,
    write_samples,
)
from lifelong_core.store.registry.models import model_with_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError

KEPT = 20
"""Newest plans of a population that are kept: the labels of a plan may arrive long after it was made."""
LARGEST_DOCUMENT = 64 * 2**10
"""Bytes of the expected widths and of an estimate."""

_plans, _labels = tables.labelling_plans, tables.labels


class LabellingPlans(Repository):
    """Stores labelling plans and follows the labels of their predictions."""

    def add(self, plan: NewPlan, samples: Sequence[LabellingSample], *, actor: str) -> LabellingPlan:
        """Store a plan; one of the same id that was not completed is replaced.

        Args:
            plan: its window, head and expected widths.
            samples: the chosen predictions, and those of the window that had a label before; those that are no longer
                in the log are left out.
            actor: name for the audit log.

        Raises:
            ConflictError: there is a plan of this id.
            PayloadTooLargeError: the expected widths are too large.
            UnavailableError: the database does not answer; the plan is not stored.
        """
        before = sum(sample.position is None for sample in samples)
        values: dict[str, Any] = {
            **vars(plan),
            "expected_widths": _text(plan.expected_widths, "expected_widths"),
            "size": len(samples) - before,
            "labelled_before": before,
            "created_at": now(),
            "created_by": actor,
        }
        delete_samples(self._database, plan.id)
        write_samples(self._database, plan, samples)
        with self._database.write() as connection:
            row = connection.execute(sa.insert(_plans).values(values).returning(_plans)).one()
            outdated = _delete_outdated(connection, plan)
            subject = subject_of(model_with_id(connection, plan.model_id), plan.environment)
            details = {"id": str(plan.id), "size": values["size"], "window_samples": plan.window_samples}
            write_audit(connection, actor, "labelling.plan", subject, details)
        for plan_id in outdated:
            delete_samples(self._database, plan_id)
        return _plan_of(row)

    def list(
        self,
        model_id: int | None = None,
        environment: str | None = None,
        *,
        limit: int = 100,
        newest_only: bool = False,
    ) -> list[LabellingPlan]:
        """The newest plans, newest first; None selects any.

        Args:
            model_id: of the model.
            environment: name.
            limit: largest number of plans.
            newest_only: only the newest plan of each population.
        """
        query = sa.select(_plans)
        if newest_only:
            population = _plans.c.model_id, _plans.c.environment
            rank = sa.func.row_number().over(partition_by=population, order_by=_plans.c.id.desc())
            ranked = sa.select(_plans.c.id, rank.label("rank")).subquery()
            query = query.join(ranked, (ranked.c.id == _plans.c.id) & (ranked.c.rank == 1))
        if model_id is not None:
            query = query.where(_plans.c.model_id == model_id)
        if environment is not None:
            query = query.where(_plans.c.environment == environment)
        return [_plan_of(row) for row in self._rows(query.order_by(_plans.c.id.desc()).limit(limit))]

    def newest(self, model_id: int, environment: str) -> LabellingPlan | None:
        """The newest plan of a population; None: there is none."""
        return next(iter(self.list(model_id, environment, limit=1)), None)

    def get(self, plan_id: UUID) -> LabellingPlan:
        """The plan with this id.

        Raises:
            NotFoundError: there is none.
        """
        plan = self.find(plan_id)
        if plan is None:
            raise NotFoundError(
                f"there is no labelling plan {plan_id}.",
                field="plan",
                hint="List them: `lifelong feedback plans`.",
            )
        return plan

    def find(self, plan_id: UUID) -> LabellingPlan | None:
        """The plan with this id; None: there is none."""
        row = self._row(sa.select(_plans).where(_plans.c.id == plan_id))
        return None if row is None else _plan_of(row)

    def chosen(self, plan_id: UUID) -> Sequence[SampledPrediction]:
        """The predictions that a plan chose, in the random order in which they are labelled."""
        with self._database.read() as connection:
            return read_samples(connection, plan_id, chosen=True)

    def labelled_before(self, plan_id: UUID) -> Sequence[SampledPrediction]:
        """The predictions of a plan's window that had a label before it was made, oldest first."""
        with self._database.read() as connection:
            return read_samples(connection, plan_id, chosen=False)

    def progress(self, plan_ids: Collection[UUID]) -> dict[UUID, PlanProgress]:
        """How many of the chosen predictions of each plan have a label."""
        with self._database.read() as connection:
            return count_progress(connection, plan_ids)

    def labelled(self, model_id: int, environment: str, *, first: UUID, last: UUID) -> frozenset[UUID]:
        """The labelled predictions of a population from one id to another, both included."""
        query = sa.select(_labels.c.prediction_id).where(
            _labels.c.model_id == model_id,
            _labels.c.environment == environment,
            _labels.c.prediction_id.between(first, last),
        )
        with self._database.read() as connection:
            return frozenset(connection.execute(query).scalars())

    def note_estimate(self, plan_id: UUID, estimate: Mapping[str, Any]) -> None:
        """Replace the estimate with the labels that have arrived; nothing happens where the plan is gone."""
        values = {"estimate": _text(estimate, "estimate"), "estimated_at": now()}
        with self._database.write() as connection:
            connection.execute(sa.update(_plans).where(_plans.c.id == plan_id).values(values))


def _text(values: Mapping[str, Any], field: str) -> str:
    return values_text(values, most=LARGEST_DOCUMENT, field=field)


def _delete_outdated(connection: sa.Connection, plan: NewPlan) -> list[UUID]:
    """Delete the rows of the population's plans beyond the newest KEPT; return their ids."""
    query = (
        sa.select(_plans.c.id)
        .where(_plans.c.model_id == plan.model_id, _plans.c.environment == plan.environment)
        .order_by(_plans.c.id.desc())
        .offset(KEPT)
    )
    outdated = list(connection.execute(query).scalars())
    if outdated:
        connection.execute(sa.delete(_plans).where(_plans.c.id.in_(outdated)))
    return outdated


def _plan_of(row: Row) -> LabellingPlan:
    """A plan from a row of `labelling_plans`.

    Raises:
        UnavailableError: a document of it is damaged.
    """
    read = partial(parse_document, field="document")
    name = f"the labelling plan {row.id}"
    return read_record(
        row,
        LabellingPlan,
        expected_widths=read_kept(read, row.expected_widths, name=name),
        estimate=None if row.estimate is None else read_kept(read, row.estimate, name=name),
    )
