"""Source tasks for a task, ranked with the stored ranker."""

from typing import TYPE_CHECKING

from lifelong_core.store.knowledge.rankers import RANK
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_core.values.validation_errors import suggest

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.entry import Scenario
    from lifelong_core.develop.ranking.suggestion import Ranking
    from lifelong_core.store.store import Store


CONFIDENCE = 0.8
"""Default of the intervals, as of `rank_sources`."""
NOT_FITTED = (
    "No ranker is fitted on the measured transfers yet: a monitor does it after each change of the knowledge base"
    " (job `rank`). The closest tasks are named without a suggestion."
)


def rank_neighbours(
    store: "Store",
    task: str,
    *,
    scenario: "Scenario",
    measure: str = "BA",
    strategy: str = "learned",
    confidence: float = CONFIDENCE,
    limit: int | None = None,
    build_index: bool = False,
) -> "Ranking":
    """Source tasks of the knowledge base for a task, best first.

    Args:
        store: the store.
        task: a task of the knowledge base.
        scenario: what would be transferred.
        measure: acronym of the measure whose gain is expected.
        strategy: of `rank_sources`.
        confidence: of the intervals, in [0.5, 0.99].
        limit: largest number of suggestions; None: all.
        build_index: of `Knowledge.load`.

    Raises:
        NotFoundError: the knowledge base does not hold the task.
        InvalidInputError: there is no such scenario, measure or strategy; the message names the parameter.
        UnavailableError: the index is not built yet, and there are too many fingerprints to read.
    """
    from lifelong_core.develop.ranking.rank_sources import rank_sources

    base = store.knowledge.load(build_index=build_index)
    if task not in base.entries:
        raise _unknown_task(store, task)
    _check_measure(measure)
    ranker = store.rankers.read()
    ranking = rank_sources(
        base,
        task,
        scenario=scenario,
        measure=measure,
        strategy=strategy,
        ranker=ranker,
        confidence=confidence,
    )
    if ranker is None and (reason := explain_missing_ranker(store)) is not None:
        ranking = ranking.model_copy(update={"declined": reason})
    if limit is None:
        return ranking
    shown = {
        "suggestions": ranking.suggestions[:limit],
        "recommended": min(limit, ranking.recommended),
        "neighbours": ranking.neighbours[:limit],
    }
    return ranking.model_copy(update=shown)


def explain_missing_ranker(store: "Store") -> str | None:
    """Why no ranker is stored, in sentences; None: there is nothing to fit one on."""
    if not store.knowledge.state().transfers:
        return None
    newest = next(iter(store.jobs.list(RANK, limit=1)), None)
    if newest is not None and newest.state == "failed":
        return f"No ranker could be fitted on the measured transfers: {(newest.error or {}).get('message')}"
    if newest is not None and (reason := (newest.result or {}).get("reason")):
        return f"No ranker could be fitted yet: {reason}"
    return NOT_FITTED


def _check_measure(measure: str) -> None:
    from lifelong_core.metrics import METRICS

    if measure not in METRICS:
        raise InvalidInputError(
            f"there is no measure {measure[:80]!r}.",
            field="measure",
            hint=suggest(measure, list(METRICS)) or "Use the acronym of a metric, such as BA or AUROC.",
        )


def _unknown_task(store: "Store", task: str) -> NotFoundError:
    if task in {one.name for one in store.tasks.list()}:
        return NotFoundError(
            f"the knowledge base has neither a card nor a fingerprint of the task {task}.",
            field="task",
            hint=f"Make its fingerprint (`lifelong fingerprint make`), or describe it: PUT /v1/admin/knowledge/{task}.",
        )
    return NotFoundError(
        f"there is no task {task[:80]!r}, neither in the knowledge base nor registered here.",
        field="task",
        hint="List them: `lifelong knowledge list`, `lifelong tasks list`.",
    )
