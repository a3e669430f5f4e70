"""The page of suggestions for one task: what to transfer from which source, with the evidence and the task map."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from lifelong_core.errors import NotFoundError
from lifelong_service.console.knowledge.neighbour_views import (
    BAR_WIDTH,
    SCENARIOS,
    conclusion_of,
    rows_of,
    signed,
)
from lifelong_service.console.knowledge.task_map import (
    MOST_MARKS,
    STYLES,
    MappedTask,
    draw_map,
    rank_distances,
)

if TYPE_CHECKING:
    from lifelong_core.arrays import Floats
    from lifelong_core.develop.knowledge.entry import Scenario
    from lifelong_core.develop.ranking.suggestion import Ranking, Suggestion

MOST_ROWS = 20
"""Suggestions on a page."""


@dataclass(frozen=True)
class Choice:
    """What the page shows; `address` leads to it."""

    target: str
    scenario: "Scenario"
    measure: str
    page: int = 1

    @property
    def address(self) -> str:
        """Path and query."""
        values = {"scenario": self.scenario, "measure": self.measure}
        if self.page > 1:
            values["page"] = str(self.page)
        return f"{task_path(self.target)}/neighbours?{urlencode(values)}"


def task_path(task: str) -> str:
    """Return the path of a task of the knowledge base."""
    return f"/console/knowledge/{task}"


def choices_of(choice: Choice, measures: Sequence[str]) -> dict[str, Any]:
    """Return the tabs of the scenarios, and the measures to choose from."""
    return {
        "target": choice.target,
        "path": task_path(choice.target),
        "meaning": SCENARIOS[choice.scenario][1],
        "tabs": [
            {
                "name": name,
                "address": replace(choice, scenario=scenario, page=1).address,
                "is_chosen": scenario == choice.scenario,
            }
            for scenario, (name, _) in SCENARIOS.items()
        ],
        "measures": [
            {
                "name": name,
                "address": replace(choice, measure=name, page=1).address,
                "is_chosen": name == choice.measure,
            }
            for name in measures
        ],
    }


def suggestions_of(ranking: "Ranking", choice: Choice) -> dict[str, Any]:
    """Return the conclusion and the suggestions of one page.

    Raises:
        NotFoundError: the list has fewer pages.
    """
    first = (choice.page - 1) * MOST_ROWS
    rows = rows_of(ranking, first, MOST_ROWS)
    if not rows and first:
        raise NotFoundError(
            f"the list has no page {choice.page}.",
            field="page",
            hint=f"It has {len(ranking.suggestions)} sources, {MOST_ROWS} on a page.",
        )
    has_more = len(ranking.suggestions) > first + MOST_ROWS
    return {
        "ranking": ranking,
        "conclusion": conclusion_of(ranking),
        "rows": rows,
        "recommended_here": any(row.is_recommended for row in rows),
        "bar_width": BAR_WIDTH,
        "earlier": replace(choice, page=choice.page - 1).address if choice.page > 1 else None,
        "later": replace(choice, page=choice.page + 1).address if has_more else None,
        "method": next((found.evidence.distance_method for found in ranking.suggestions), None),
    }


def mapped_sources(ranking: "Ranking") -> list["Suggestion"]:
    """Return the sources of the map: the closest ones, in the order of the list."""
    known = [one for one in ranking.suggestions if one.evidence.distance is not None]
    closest = sorted(known, key=lambda one: one.evidence.distance_rank or len(known))[: MOST_MARKS - 1]
    names = {one.source for one in closest}
    return [one for one in known if one.source in names]


def map_of(ranking: "Ranking", choice: Choice, distances: "Floats") -> dict[str, Any]:
    """Return the task map.

    Args:
        ranking: the suggestions.
        choice: what the page shows.
        distances: (n + 1, n + 1), of the target and of the n `mapped_sources`, in this order.
    """
    from lifelong_core.develop.knowledge.task_map import draw_task_map

    sources = mapped_sources(ranking)
    places = {one.source: number for number, one in enumerate(ranking.suggestions, 1)}
    tasks = [
        MappedTask(
            ranking.target, "target", None, f"{ranking.target}: the target", task_path(ranking.target)
        ),
        *(_mapped(one, places[one.source], ranking, choice) for one in sources),
    ]
    layout = draw_task_map(rank_distances(distances))
    return {
        "drawings": [draw_map(tasks, layout.positions, style) for style in STYLES],
        "map_text": _map_text(ranking, len(sources), layout.stress),
    }


def _mapped(suggestion: "Suggestion", number: int, ranking: "Ranking", choice: Choice) -> MappedTask:
    page = (number - 1) // MOST_ROWS + 1
    address = "" if page == choice.page else replace(choice, page=page).address
    evidence = suggestion.evidence
    title = (
        f"{number}. {suggestion.source}: expected gain {signed(suggestion.expected_gain)}"
        f" ({signed(suggestion.low)} to {signed(suggestion.high)}), distance {evidence.distance:.3g},"
        f" rank {evidence.distance_rank} of {evidence.known_distances}"
    )
    kind = "recommended" if number <= ranking.recommended else "other"
    return MappedTask(suggestion.source, kind, number, title, f"{address}#source-{number}")


def _map_text(ranking: "Ranking", sources: int, stress: float) -> str:
    known = max((one.evidence.known_distances for one in ranking.suggestions), default=sources)
    shown = f"Only the {sources} closest of {known} sources are drawn. " if known > sources else ""
    return (
        f"The closer two tasks lie, the smaller the distance of their fingerprints. {shown}A plane keeps the order of"
        f" the distances only in part (stress {stress:.2f}; 0 would be exact), so read the distances themselves in the"
        " list above. Numbers are places in this list."
    )
