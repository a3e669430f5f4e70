"""Suggestions as the page shows them."""

import numpy as np
import pytest

from lifelong_core.develop.ranking.suggestion import Evidence, Neighbour, Ranking, Suggestion
from lifelong_core.entities.develop.knowledge import MappedTask
from lifelong_core.operations.develop.knowledge import TaskMapAnswer
from lifelong_core.values.errors import NotFoundError
from lifelong_service.console.knowledge.neighbour_views import BAR_WIDTH, rows_of
from lifelong_service.console.knowledge.neighbours import (
    MOST_ROWS,
    Choice,
    map_of,
    suggestions_of,
)

CHOICE = Choice("moles", "pretraining", "BA")


def suggest(number: int, gain: float = 0.01, **evidence: object) -> Suggestion:
    found = {
        "distance": float(number),
        "distance_method": "VDNA",
        "distance_rank": number,
        "known_distances": 99,
    }
    values = {"card_similarity": 0.5, "baseline_effect": 0.004, "outcomes": 2106}
    return Suggestion(
        source=f"source_{number}",
        expected_gain=gain,
        low=gain - 0.03,
        high=gain + 0.02,
        evidence=Evidence(**{**found, **values, **evidence}),
        reasons=("it is the closest source",),
        limits=("its images cannot be transferred",),
    )


def rank(*suggestions: Suggestion, recommended: int = 0, declined: str | None = None) -> Ranking:
    return Ranking(
        target="moles",
        scenario="pretraining",
        measure="BA",
        strategy="learned",
        confidence=0.9,
        suggestions=suggestions,
        recommended=recommended,
        declined=declined,
    )


def test_the_conclusion_is_a_sentence() -> None:
    refusal = "nothing here is expected to help"
    assert suggestions_of(rank(suggest(1), declined=refusal), CHOICE)["conclusion"] == f"N{refusal[1:]}."


def test_every_piece_of_evidence_is_shown() -> None:
    known = suggest(3, 0.0124, track_record=-0.0123, track_record_targets=26)
    unknown = suggest(4, distance=None, distance_method=None, distance_rank=None, known_distances=0)
    first, second = rows_of(rank(known, unknown, recommended=1), 0, 20)
    assert (first.number, first.gain, first.low, first.high) == (1, "+0.012", "-0.018", "+0.032")
    assert (first.is_recommended, second.is_recommended) == (True, False)
    assert first.facts == (
        ("Distance", "3.00", "rank 3 of 99"),
        ("Track record", "-0.012", "26 targets"),
        ("Card similarity", "0.50", ""),
        ("Baseline effect", "+0.004", ""),
        ("Outcomes", "2,106", ""),
    )
    assert second.facts[0] == ("Distance", "not known", "")
    assert second.facts[1] == ("Track record", "not measured", "")
    assert first.reasons == ("it is the closest source",)
    assert first.limits == ("its images cannot be transferred",)


@pytest.mark.parametrize("gains", [(0.05, -0.05), (0.2, 0.1), (-0.1, -0.2), (0.0, 0.0)])
def test_bars_share_one_scale_around_zero(gains: tuple[float, float]) -> None:
    rows = rows_of(rank(*(suggest(number, gain) for number, gain in enumerate(gains, 1))), 0, 20)
    assert rows[0].bar.zero == rows[1].bar.zero
    for row, gain in zip(rows, gains, strict=True):
        bar = row.bar
        places = [bar.low, bar.gain, bar.high]
        assert 0 < min(*places, bar.zero) < max(*places, bar.zero) < BAR_WIDTH
        assert places == sorted(places)
        assert np.sign(bar.gain - bar.zero) == np.sign(gain)
        assert row.is_positive == (gain > 0)


def test_suggestions_come_in_pages() -> None:
    ranking = rank(*(suggest(number) for number in range(1, 46)), recommended=25)
    first, last = (suggestions_of(ranking, Choice("moles", "pretraining", "BA", page)) for page in (1, 3))
    assert [row.number for row in first["rows"]] == list(range(1, MOST_ROWS + 1))
    assert [row.number for row in last["rows"]] == [41, 42, 43, 44, 45]
    address = "/console/knowledge/moles/neighbours?scenario=pretraining&measure=BA"
    assert (first["earlier"], first["later"]) == (None, f"{address}&page=2")
    assert (last["earlier"], last["later"]) == (f"{address}&page=2", None)
    assert [[row.number for row in group] for _, group in first["groups"]] == [list(range(1, 21)), []]
    middle = suggestions_of(ranking, Choice("moles", "pretraining", "BA", 2))
    assert [[row.number for row in group] for _, group in middle["groups"]] == [
        [21, 22, 23, 24, 25],
        list(range(26, 41)),
    ]
    with pytest.raises(NotFoundError, match="no page 4"):
        suggestions_of(ranking, Choice("moles", "pretraining", "BA", 4))
    assert suggestions_of(rank(declined="no source is known"), CHOICE)["rows"] == []


def in_a_row(tasks: list[str], method: str | None) -> TaskMapAnswer:
    assert method in (None, "VDNA")
    places = [MappedTask(task=task, x=float(x), y=0.0) for x, task in enumerate(tasks)]
    return TaskMapAnswer(tasks=places, stress=0.1)


def test_the_map_holds_the_closest_sources_only_and_says_so() -> None:
    order = np.random.default_rng(0).permutation(99) + 1
    suggestions = [suggest(int(number)) for number in order]
    unknown = suggest(100, distance=None, distance_method=None, distance_rank=None)
    ranking = rank(unknown, *suggestions, recommended=2)
    found = map_of(ranking, CHOICE, in_a_row)
    assert "Only the 60 closest of 99 sources are drawn." in found["map_text"]
    wide = found["drawings"][0]
    assert {mark.task.name for mark in wide.marks} == {"moles", *(f"source_{rank}" for rank in range(1, 61))}
    places = {one.source: number for number, one in enumerate(ranking.suggestions, 1)}
    for mark in wide.marks[:-1]:
        number = places[mark.task.name]
        assert mark.task.number == number
        assert mark.task.kind == ("recommended" if number <= 2 else "other")
        address = (
            ""
            if number <= MOST_ROWS
            else f"?scenario=pretraining&measure=BA&page={(number - 1) // MOST_ROWS + 1}"
        )
        assert (
            mark.task.path.removeprefix("/console/knowledge/moles/neighbours") == f"{address}#source-{number}"
        )


def test_without_suggestions_the_map_holds_the_closest_tasks() -> None:
    close = tuple(Neighbour(source=name, distance=1.0, card_similarity=0.5) for name in ("nevi", "svhn"))
    alike = Neighbour(source="mnist", card_similarity=0.9)
    ranking = rank(declined="too few transfers").model_copy(update={"neighbours": (*close, alike)})
    found = map_of(ranking, CHOICE, in_a_row)
    titles = [mark.task.title for mark in found["drawings"][1].marks]
    assert titles == ["1. nevi: distance 1.00", "2. svhn: distance 1.00", "moles: the target"]


def test_without_distances_there_is_no_map() -> None:
    unknown = suggest(1, distance=None, distance_method=None, distance_rank=None)
    assert map_of(rank(unknown), CHOICE, in_a_row) == {"drawings": []}
