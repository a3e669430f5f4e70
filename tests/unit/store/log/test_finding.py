"""Predictions are found by filters, page by page, and by the id of their request."""

from datetime import timedelta
from uuid import UUID

import pytest

from lifelong_core.store import LogEntry, NewLabel, Store, logged_at
from lifelong_core.store.log import finding
from lifelong_core.store.log.finding import Filter
from tests.unit.store.samples import entry, ids_of, prediction


def pages(store: Store, wanted: Filter, *, limit: int = 2) -> list[list[UUID]]:
    """The ids of all pages."""
    found, before = [], None
    while True:
        page = store.finder.page(wanted, limit=limit, before=before)
        found.append([one.id for one in page.predictions])
        if page.next is None:
            return found
        before = page.next


def log(store: Store) -> list[UUID]:
    """Ten predictions of two models in two environments, each third labelled; newest first."""
    rows = [prediction(1 + k % 2, "ab"[k // 5], decision=k % 3, group_hash=b"g" * 16) for k in range(10)]
    store.predictions.append([LogEntry((row,)) for row in rows])
    store.labels.record([NewLabel(row.id, 1) for row in rows[::3]], actor="ann")
    return [row.id for row in rows][::-1]


@pytest.mark.parametrize("most_read", [3, 10_000])
def test_filters_find_all_and_only_what_they_say(
    store: Store, monkeypatch: pytest.MonkeyPatch, most_read: int
) -> None:
    monkeypatch.setattr(finding, "MOST_READ", most_read)
    ids = log(store)
    kept = {
        Filter(): ids,
        Filter(model_id=1, environment="a"): [ids[5], ids[7], ids[9]],
        Filter(environment="b"): ids[:5],
        Filter(model_id=2): ids[::2],
        Filter(decision=2): [ids[1], ids[4], ids[7]],
        Filter(is_labelled=True): ids[::3],
        Filter(model_id=1, environment="b", is_labelled=True): [ids[3]],
        Filter(is_labelled=False, decision=0): [],
        Filter(is_labelled=False, decision=1): [ids[2], ids[5], ids[8]],
        Filter(until=logged_at(ids[-1]) - timedelta(days=400)): [],
    }
    for wanted, expected in kept.items():
        found = pages(store, wanted)
        assert [one for page in found for one in page] == expected, wanted
        assert all(len(page) <= 2 for page in found)


def test_a_page_of_rare_predictions_is_short_and_leads_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "MOST_READ", 4)
    ids = log(store)
    page = store.finder.page(Filter(environment="a"), limit=2)
    assert (page.predictions, page.next) == ([], ids[3])


def test_a_found_prediction_has_its_label(store: Store) -> None:
    log(store)
    first, second, *_ = store.finder.page(Filter(), limit=5).predictions
    assert (first.label, first.environment, first.decision, first.group_hash) == (1, "b", 0, b"g" * 16)
    assert second.label is None


def test_predictions_of_a_request(store: Store) -> None:
    entries = [entry("r1", predictions=3), entry("r2"), entry("r1", environment="b"), entry("r1", model_id=2)]
    store.predictions.append(entries)
    newest_first = ids_of(entries)[::-1]

    def found(models: list[int], environment: str | None, limit: int = 10) -> list[UUID]:
        page = store.finder.of_request(models, "r1", environment, limit=limit)
        return [one.id for one in page.predictions]

    assert found([1, 2], None) == [newest_first[0], newest_first[1], *newest_first[3:]]
    assert found([1], "default") == newest_first[3:]
    assert found([1], "default", limit=2) == newest_first[3:5]
    assert found([], None) == []
