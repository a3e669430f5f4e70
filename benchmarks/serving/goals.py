"""The goals beside the figures; nothing is asserted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Goal:
    """A figure, and the value that it should reach.

    Attributes:
        meaning: of the figure.
        path: keys and indices in the figures; the first one is the case.
        limit: the goal.
        is_least: whether the figure should be at least the limit; else at most.
    """

    meaning: str
    path: tuple[str | int, ...]
    limit: float
    is_least: bool = True


GOALS = (
    Goal("16 clients: times the typed BentoML API", ("overhead", "16", "ours_to", "typed", 0), 3.5),
    Goal("16 clients: times plain uvicorn", ("overhead", "16", "ours_to", "plain", 0), 0.8),
    Goal("16 clients: p99 / p50", ("overhead", "16", "tail_to_median", 0), 2, is_least=False),
    Goal("lone client: p50, ms", ("overhead", "1", "servers", "ours", "p50_ms"), 1, is_least=False),
    Goal("lone client: after / before a burst", ("burst", "servers", "ours", "after_to_before", 0), 1),
    Goal("16 clients: longest, ms", ("longest", "servers", "ours", "maximum_ms"), 50, is_least=False),
    Goal("compute-bound, 8 clients: times bare", ("compute", "8", "ours_to", "decoded", 0), 0.95),
    Goal(
        "compute-bound, 8 clients: times bare with decode",
        ("compute", "8", "ours_to", "with_decode", 0),
        0.95,
    ),
    Goal("two workers: times one", ("workers", "two_to_one", 0), 1.8),
    Goal("/v1/logits: decisions/s per core", ("logits", "JSON", "decisions_per_core"), 40_000),
    Goal("start to ready, s", ("start", "ready_seconds"), 3, is_least=False),
    Goal("memory of a worker after load, MB", ("start", "loaded_megabytes"), 300, is_least=False),
)


def beside_goals(cases: dict[str, Any], goals: Sequence[Goal] = GOALS) -> list[dict[str, Any]]:
    """Each goal whose case was measured, with its figure and whether that reaches it.

    Raises:
        KeyError: a measured case lacks the figure.
    """
    rows: list[dict[str, Any]] = []
    for goal in goals:
        if goal.path[0] not in cases:
            continue
        figure: Any = cases
        for key in goal.path:
            figure = figure[key]
        reached = figure >= goal.limit if goal.is_least else figure <= goal.limit
        rows.append(
            {
                "goal": goal.meaning,
                "limit": f"{'at least' if goal.is_least else 'at most'} {goal.limit:g}",
                "figure": figure,
                "is_reached": reached,
            }
        )
    return rows


def show_goals(rows: Sequence[dict[str, Any]]) -> None:
    """Print the goals as a table."""
    print("\n| goal | limit | figure | reached |\n|---|---|---|---|")
    for row in rows:
        print(
            f"| {row['goal']} | {row['limit']} | {row['figure']:,.2f} | {'yes' if row['is_reached'] else 'no'} |"
        )
