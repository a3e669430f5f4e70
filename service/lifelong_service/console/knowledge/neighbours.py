"""The page of suggestions for one task: what to transfer from which source, with the evidence and the task map."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import numpy as np

from lifelong_core.values.errors import NotFoundError, UnavailableError
from lifelong_service.console.knowledge.neighbour_views import (
    BAR_WIDTH,
    SCENARIOS,
    rows_of,
    signed,
)
from lifelong_service.console.knowledge.task_map import (
    MOST_MARKS,
    STYLES,
    MappedTask,
    draw_map,
)
from lifelong_service.console.pages import as_sentence

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.entry import Scenario
    from lifelong_core.develop.ranking.suggestion import Ranking, Suggestion
    from lifelong_core.operations.develop.knowledge import TaskMapAnswer

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
    from lifelong_core.develop.ranking.suggestion import conclude

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
        "conclusion": as_sentence(conclude(ranking)),
        "rows": rows,
        "groups": [
            ("Expected to help", [row for row in rows if row.is_recommended]),
            ("Not expected to help", [row for row in rows if not row.is_recommended]),
        ],
        "neighbours": ranking.neighbours,
        "bar_width": BAR_WIDTH,
        "earlier": replace(choice, page=choice.page - 1).address if choice.page > 1 else None,
        "later": replace(choice, page=choice.page + 1).address if has_more else None,
        "method": method_of(ranking),
    }


def map_of(
    ranking: "Ranking", choice: Choice, locate: Callable[[list[str], str | None], "TaskMapAnswer"]
) -> dict[str, Any]:
    """Return the task map; without drawings where no distance is known.

    Args:
        ranking: the suggestions.
        choice: what the page shows.
        locate: places tasks in the plane, by a method of the distances; None: the first one that knows any.
    """
    sources = _mapped_suggestions(ranking, choice) or _mapped_neighbours(ranking)
    if not sources:
        return {"drawings": []}
    target = ranking.target
    tasks = [MappedTask(target, "target", None, f"{target}: the target", task_path(target)), *sources]
    try:
        layout = locate([task.name for task in tasks], method_of(ranking))
    except UnavailableError:  # more fingerprints than a serving process reads
        return {"drawings": []}
    positions = np.array([(one.x, one.y) for one in layout.tasks])
    return {
        "drawings": [draw_map(tasks, positions, style) for style in STYLES],
        "map_kinds": {task.kind for task in tasks},
        "map_text": _map_text(ranking, len(sources), layout.stress),
    }


def method_of(ranking: "Ranking") -> str | None:
    """Return the method of the distances; None: no distance is known."""
    names = (one.evidence.distance_method for one in ranking.suggestions)
    return next((name for name in names if name is not None), None)


def _mapped_suggestions(ranking: "Ranking", choice: Choice) -> list[MappedTask]:
    """Return the closest sources, in the order of the list."""
    ranks = {
        one.source: one.evidence.distance_rank
        for one in ranking.suggestions
        if one.evidence.distance_rank is not None
    }
    closest = set(sorted(ranks, key=lambda source: ranks[source])[: MOST_MARKS - 1])
    return [
        _mapped(one, number, ranking, choice)
        for number, one in enumerate(ranking.suggestions, 1)
        if one.source in closest
    ]


def _mapped_neighbours(ranking: "Ranking") -> list[MappedTask]:
    known = [one for one in ranking.neighbours if one.distance is not None]
    return [
        MappedTask(
            one.source,
            "other",
            number,
            f"{number}. {one.source}: distance {one.distance:#.3g}",
            f"#source-{number}",
        )
        for number, one in enumerate(known, 1)
    ]


def _mapped(suggestion: "Suggestion", number: int, ranking: "Ranking", choice: Choice) -> MappedTask:
    page = (number - 1) // MOST_ROWS + 1
    address = "" if page == choice.page else replace(choice, page=page).address
    evidence = suggestion.evidence
    title = (
        f"{number}. {suggestion.source}: expected gain {signed(suggestion.expected_gain)}"
        f" ({signed(suggestion.low)} to {signed(suggestion.high)}), distance {evidence.distance:#.3g},"
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
        " list above. On a narrow screen, the numbers are places in this list."
    )
