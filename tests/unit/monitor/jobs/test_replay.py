"""The kind `replay`: an unchanged report is reproduced, and differences are named."""

import json
from typing import Any
from uuid import UUID

import pytest

from lifelong_core.configuration.settings import Settings
from lifelong_core.store import Model, Store
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from lifelong_monitor.cycle.cycle import run_cycle
from lifelong_monitor.cycle.replay import FieldDifference, compare_documents
from lifelong_monitor.jobs.running.work import work_of
from tests.unit.monitor.cycle.test_summarised_cycle import log
from tests.unit.monitor.population import BALANCED, DUE, SHIFTED, draw, predict


def replayed(store: Store, cycle: object) -> dict[str, Any]:
    return work_of("replay")(store, store.jobs.submit("replay", {"cycle": str(cycle)}, actor="tests"))


def recorded(store: Store, settings: Settings, model: Model) -> UUID:
    cycle = run_cycle(store, settings, model, "clinic", DUE).last
    return cycle.id


def change(store: Store, cycle_id: UUID, **values: Any) -> None:
    """Change the recorded report; keys name parts with `__`."""
    report = dict(store.cycles.get(cycle_id).report)
    for path, value in values.items():
        *parts, last = path.split("__")
        node: Any = report
        for part in parts:
            node = node[part]
        node[int(last) if isinstance(node, list) else last] = value
    text = json.dumps(report).replace("'", "''").replace("%", "%%").replace(":", "\\:")
    with store.database.write() as connection:
        connection.exec_driver_sql(f"UPDATE cycles SET report = '{text}'".replace("\\:", ":"))


def test_a_cycle_is_the_same_to_the_last_bit(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(SHIFTED, 600, seed=3))
    cycle_id = recorded(store, settings, model)
    assert replayed(store, cycle_id) == {
        "cycle": str(cycle_id),
        "same": True,
        "tolerance": 0.0,
        "differing_fields": 0,
        "differences": [],
    }


def test_every_field_that_differs_is_named_with_both_values(
    store: Store, settings: Settings, model: Model
) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    cycle_id = recorded(store, settings, model)
    estimated = store.cycles.get(cycle_id).report["prevalence"]["prevalence"][1]
    change(store, cycle_id, outcome="refuse", prevalence__prevalence__1=estimated + 2**-40)
    result = replayed(store, cycle_id)
    assert (result["same"], result["differing_fields"]) == (False, 2)
    assert sorted(result["differences"], key=lambda one: one["field"]) == [
        {"field": "outcome", "recorded": "refuse", "replayed": "keep"},
        {
            "field": "prevalence.prevalence.1",
            "recorded": estimated + 2**-40,
            "replayed": estimated,
        },
    ]


def test_a_window_of_summaries_is_compared_to_the_rounding_of_sums(
    store: Store, settings: Settings, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lifelong_monitor.cycle.window.LARGEST_WINDOW_OF_ROWS", 500)
    log(store, model, 2, draw(BALANCED, 600, seed=1))
    cycle_id = recorded(store, settings, model)
    report = store.cycles.get(cycle_id).report
    assert report["inputs"]["hours"] is not None
    low = report["prevalence"]["low"][0]
    change(store, cycle_id, prevalence__low__0=low + 1e-12)
    result = replayed(store, cycle_id)
    assert (result["same"], result["tolerance"]) == (True, 1e-9)
    change(store, cycle_id, prevalence__low__0=low + 1e-6)
    assert [one["field"] for one in replayed(store, cycle_id)["differences"]] == ["prevalence.low.0"]


def test_what_cannot_be_replayed_is_an_error(store: Store, settings: Settings, model: Model) -> None:
    predict(store, model, "clinic", draw(BALANCED, 600, seed=3))
    cycle_id = recorded(store, settings, model)
    with store.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM predictions")
    for cycle, error in ((cycle_id, NotFoundError), (UUID(int=7), NotFoundError), ("7", InvalidInputError)):
        with pytest.raises(error) as caught:
            replayed(store, cycle)
        assert getattr(caught.value, "field", None) == "cycle"


def test_documents_are_compared_field_by_field() -> None:
    def fields(recorded: Any, again: Any, tolerance: float = 0.0) -> list[str]:
        return [one.field for one in compare_documents(recorded, again, tolerance=tolerance)]

    assert fields({"a": 1, "b": [1.0, {"c": "x"}]}, {"a": 1.0, "b": [1.0, {"c": "x"}]}) == []
    assert fields({"a": 1, "b": [1.0, {"c": "x"}]}, {"a": True, "b": [1.5, {"c": "y"}]}) == [
        "a",
        "b.0",
        "b.1.c",
    ]
    assert fields({"a": 1}, {"b": None, "c": 0}) == ["a", "c"]
    assert list(compare_documents({"a": [1]}, {"a": [1, 2]})) == [FieldDifference("a", [1], [1, 2])]
    near, digests = {"a": 1 + 1e-12}, {"window_digest": "1", "calibration_digest": "1"}
    assert fields(near, {"a": 1.0}) == ["a"]
    assert fields({"window_digest": "1"}, {"window_digest": "2"}) == ["window_digest"]
    assert fields(near, {"a": 1.0}, 1e-9) == []
    assert fields(digests, {"window_digest": "2", "calibration_digest": "2"}, 1e-9) == ["calibration_digest"]
