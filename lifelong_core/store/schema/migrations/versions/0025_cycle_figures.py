"""Figures of cycles in a column of their own: overviews of all populations read no reports.

The newest cycle of each population gets its figures; earlier ones have none.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

UUID = sa.LargeBinary(16).with_variant(postgresql.UUID(), "postgresql")
CYCLES = sa.table(
    "cycles", sa.column("id", UUID), sa.column("report", sa.JSON), sa.column("figures", sa.JSON)
)
NEWEST = """
SELECT id FROM (
    SELECT id, row_number() OVER (
        PARTITION BY model_id, environment ORDER BY log_position DESC, due_at DESC, id DESC
    ) AS place FROM cycles
) AS placed WHERE place = 1
"""


def upgrade() -> None:
    connection = op.get_bind()
    newest = connection.scalars(sa.text(NEWEST).columns(CYCLES.c.id)).all()
    reports = sa.select(CYCLES.c.report).where(CYCLES.c.id == sa.bindparam("cycle"))
    # Before the change of the table, which keeps others from reading it.
    figures = {
        cycle: figures_of(connection.execute(reports, {"cycle": cycle}).scalar_one()) for cycle in newest
    }
    op.add_column("cycles", sa.Column("figures", sa.JSON(none_as_null=True)))
    for cycle, found in figures.items():
        connection.execute(sa.update(CYCLES).where(CYCLES.c.id == cycle).values(figures=found))


def figures_of(report: dict[str, Any]) -> dict[str, Any]:
    """The numbers that overviews show."""
    gain: dict[str, Any] = report.get("expected_gain") or {}
    performance: dict[str, Any] = report.get("performance") or {}
    estimates: dict[str, Any] = performance.get("estimates") or {}
    cost = estimates.get("EC") or [None]
    return {
        "shift": shift(report.get("prevalence"), report.get("assumed_prevalence")),
        "expected_cost": gain.get("current_cost", cost[0]),
        "best_expected_cost": gain.get("candidate_cost"),
        "accuracy": estimates.get("AC"),
        "reasons": [reason["code"] for reason in report.get("reasons") or ()],
    }


def shift(estimate: dict[str, list[float]] | None, assumed: list[float] | None) -> list[float] | None:
    """L1 distance of the estimated prevalence from the assumed one, with its bounds."""
    if estimate is None or assumed is None:
        return None
    value, least, most = (
        [one - other for one, other in zip(estimate[part], assumed, strict=True)]
        for part in ("prevalence", "low", "high")
    )
    nearest = 2 * max(sum(max(one, 0) for one in least), sum(max(-one, 0) for one in most))
    farthest = 2 * min(sum(max(one, 0) for one in most), sum(max(-one, 0) for one in least), 1)
    by_class = sum(max(abs(low), abs(high)) for low, high in zip(least, most, strict=True))
    return [sum(map(abs, value)), nearest, min(farthest, by_class)]
