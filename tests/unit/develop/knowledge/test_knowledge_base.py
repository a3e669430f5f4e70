from typing import Any

import numpy as np
import pytest

from lifelong_core.develop.knowledge.entry import KnowledgeEntry, Training
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from tests.unit.develop.knowledge.examples import make_card, make_entry, same


def test_a_change_gives_a_new_value() -> None:
    empty = KnowledgeBase()
    one = empty.add(make_entry("a"))
    assert empty.tasks == ()
    assert one.tasks == ("a",)
    assert one.add(make_entry("a", baseline=(0.9,))).entry("a").trainings[0].performance["BA"] == (0.9,)
    assert one.remove("a") == empty
    with pytest.raises(TypeError):
        one.entries["b"] = make_entry("b")  # type: ignore[index]


def test_a_task_that_is_not_held_is_named_with_near_names() -> None:
    knowledge = KnowledgeBase.from_entries([make_entry("polyps")])
    with pytest.raises(NotFoundError, match="Did you mean polyps") as caught:
        knowledge.entry("polps")
    assert caught.value.field == "task"
    with pytest.raises(NotFoundError):
        knowledge.remove("polps")


def test_two_entries_of_one_task_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="two entries"):
        KnowledgeBase.from_entries([make_entry("a"), make_entry("a")])
    with pytest.raises(InvalidInputError, match="is of 'a'"):
        KnowledgeBase({"b": make_entry("a")})
    with pytest.raises(InvalidInputError, match="no entry is of the task 'a'"):
        KnowledgeBase({}, {"a": ()})


def test_outcomes_have_source_before_target() -> None:
    knowledge = KnowledgeBase.from_entries(
        [
            make_entry("a", distances={"FID": {"b": 3.0}}),
            make_entry("b", baseline=(0.2,), transfers={("pretraining", "a"): (0.7, 0.8)}),
        ]
    )
    outcomes = knowledge.outcomes()
    assert outcomes.tasks == ("a", "b")
    assert outcomes.scenarios == ("pretraining",)
    nan = np.nan
    assert same(outcomes.outcomes[0, 0, :, 0, 1], [0.7, 0.8])
    assert np.isfinite(outcomes.outcomes).sum() == 2
    assert same(outcomes.baseline[0], [[0.5, 0.2], [0.6, nan]])
    assert same(outcomes.distances[0], [[nan, nan], [3.0, nan]])


def test_trainings_with_another_number_of_images_are_not_mixed() -> None:
    small = make_entry(
        "a",
        baseline=(0.1,),
        training_samples=100,
        transfers={("architecture", "b"): (0.2,), ("architecture", "c"): (0.3,)},
    )
    large = make_entry("a", baseline=(0.8,), transfers={("architecture", "b"): (0.9,)})
    entry = KnowledgeEntry(card=small.card, trainings=large.trainings + small.trainings)
    outcomes = KnowledgeBase.from_entries([entry, make_entry("b"), make_entry("c")]).outcomes()
    assert outcomes.baseline[0, 0, 0] == 0.1
    assert same(outcomes.outcomes[0, 0, 0, :, 0], [np.nan, 0.2, 0.3])


def test_further_trainings_are_further_repetitions() -> None:
    entry = make_entry("a", transfers={("architecture", "b"): (0.2,)})
    more = Training(scenario="architecture", source="b", performance={"BA": (0.4,), "AUROC": (0.5,)})
    entry = entry.model_copy(update={"trainings": (*entry.trainings, more)})
    outcomes = KnowledgeBase.from_entries([entry, make_entry("b")]).outcomes()
    assert outcomes.measures == ("BA", "AUROC")
    assert same(outcomes.outcomes[0, :, :, 1, 0], [[0.2, 0.4], [0.5, np.nan]])


def test_measures_of_which_lower_values_are_better_are_left_out() -> None:
    baseline = Training(performance={"BS": (0.2, 0.3), "BA": (0.6,)})
    transfer = Training(scenario="pretraining", source="b", performance={"BS": (0.1,), "own": (0.7,)})
    entries = [KnowledgeEntry(card=make_card("a"), trainings=(baseline, transfer)), make_entry("b")]
    outcomes = KnowledgeBase.from_entries(entries).outcomes()
    assert set(outcomes.measures) == {"BA", "own"}
    assert outcomes.outcomes[0, outcomes.measures.index("own"), 0, 1, 0] == 0.7


def test_transfers_from_tasks_that_are_gone_are_left_out() -> None:
    knowledge = KnowledgeBase.from_entries(
        [make_entry("a", transfers={("architecture", "b"): (0.2,)}), make_entry("b")]
    ).remove("b")
    assert np.isnan(knowledge.outcomes().outcomes).all()
    assert knowledge.outcomes().baseline.shape == (1, 2, 1)


def test_outcomes_are_assembled_once_for_each_value() -> None:
    knowledge = KnowledgeBase.from_entries([make_entry("a"), make_entry("b")])
    assert knowledge.outcomes() is knowledge.outcomes()
    assert knowledge.remove("b").outcomes().tasks == ("a",)


def test_tasks_of_which_only_the_card_is_known_take_no_room_in_the_outcomes() -> None:
    def make_card(name: str) -> KnowledgeEntry:
        return KnowledgeEntry(card=make_entry(name).card)

    entry = make_entry("a", transfers={("architecture", "source"): (0.2,)}, distances={"FID": {"near": 3.0}})
    cards = map(make_card, ("source", "near", "other"))
    knowledge = KnowledgeBase.from_entries([entry, *cards])
    assert knowledge.outcomes().tasks == ("a", "source", "near")


def test_nothing_known_gives_empty_arrays() -> None:
    outcomes = KnowledgeBase().outcomes()
    assert outcomes.outcomes.shape == (0, 0, 0, 0, 0)
    assert outcomes.distances.shape == (0, 0, 0)


def test_trainings_are_found_by_target_source_and_scenario() -> None:
    knowledge = KnowledgeBase.from_entries(
        [make_entry("a", transfers={("architecture", "b"): (0.2,)}), make_entry("b")]
    )
    assert [name for name, _ in knowledge.trainings()] == ["a", "a", "b"]
    assert [training.source for _, training in knowledge.trainings(source="b")] == ["b"]
    assert knowledge.trainings(target="b", scenario="architecture") == ()


def test_tasks_of_one_data_set_are_sources_of_each_other_only_if_measured() -> None:
    knowledge = KnowledgeBase.from_entries(
        [
            make_entry("a", dataset="one", transfers={("architecture", "b"): (0.2,)}),
            make_entry("b", dataset="one"),
            make_entry("c", dataset="two"),
            make_entry("d"),
        ]
    )
    assert knowledge.possible_sources("a") == ("b", "c", "d")
    assert knowledge.possible_sources("b") == ("c", "d")
    assert knowledge.possible_sources("d") == ("a", "b", "c")
    assert knowledge.possible_sources(make_card("new", "two")) == ("a", "b", "d")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"card": {"classes": 10**400}}, "card.classes"),
        ({"card": {"samples": 10**400}}, "card.samples"),
        ({"card": {"smallest_pixels": 10**400}}, "card.smallest_pixels"),
        ({"card": {"imbalance": 1e308}}, "card.imbalance"),
        ({"performance": {"BA": [1e308, 1e308]}}, "trainings.0.performance.BA"),
        ({"performance": {"BA": []}}, "trainings.0.performance.BA"),
        ({"performance": {"BA": [0.5] * 200_000}}, "trainings.0.performance.BA"),
        ({"performance": {"B" * 10_000: [0.5]}}, "trainings.0.performance"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_entry_that_no_other_could_be_ranked_with_is_refused(change: dict[str, Any], field: str) -> None:
    document = make_entry("skin").to_document()
    document["card"] |= change.get("card", {})
    document["trainings"][0] |= {name: value for name, value in change.items() if name != "card"}
    with pytest.raises(InvalidInputError) as caught:
        KnowledgeEntry.from_document(document)
    assert str(caught.value.field).startswith(field)
