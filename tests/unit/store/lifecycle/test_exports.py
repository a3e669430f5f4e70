"""Reading a whole environment in pages."""

from datetime import timedelta

from lifelong_core.store import LogEntry, NewLabel, Store, logged_at
from lifelong_core.store.log import identifiers
from tests.unit.store.samples import add_model, prediction


def test_pages_hold_every_prediction_once_in_order_with_its_label(store: Store):
    for name in ("one", "two"):
        add_model(store, name)
    first, second = (store.models.get(name).id for name in ("one", "two"))
    logged = [prediction(first, "site-a", group_hash=bytes(16) if index % 2 else None) for index in range(25)]
    store.predictions.append([LogEntry((row,)) for row in reversed(logged)])
    store.predictions.append([LogEntry((prediction(second, "site-b"),))])
    store.labels.record([NewLabel(logged[3].id, 2)], actor="lis")
    store.labels.record([NewLabel(logged[3].id, 1, propensity=0.5)], actor="dr-b")
    log_position = store.exports.log_position()
    store.predictions.append([LogEntry((prediction(first, "site-a"),))])
    assert store.exports.models("site-a") == [first]
    assert store.exports.models("nowhere") == []
    pages = list(store.exports.pages(first, "site-a", log_position=log_position, size=7))
    assert [len(page.ids) for page in pages] == [7, 7, 7, 4]
    assert [one for page in pages for one in page.ids] == [row.id for row in logged]
    assert [bytes(one) for page in pages for one in page.logits] == [row.logits.tobytes() for row in logged]
    assert [one for page in pages for one in page.groups] == [row.group_hash for row in logged]
    labels = [one for page in pages for one in page.labels]
    assert [index for index, label in enumerate(labels) if label is not None] == [3]
    assert [one is not None for page in pages for one in page.labels_recorded_at] == [
        one is not None for one in labels
    ]
    assert [one for page in pages for one in page.label_propensities] == [None] * 3 + [0.5] + [None] * 21
    histories = [one for page in pages for one in page.label_histories]
    assert histories[3] == store.labels.history(logged[3].id)
    assert [revision.actor for revision in histories[3]] == ["lis", "dr-b"]
    assert histories[:3] + histories[4:] == [()] * 24


def test_pages_keep_to_a_span_of_time(store: Store):
    model = add_model(store).id
    start = logged_at(prediction().id).replace(microsecond=0) - timedelta(days=3)
    moments = [start + timedelta(hours=13 * index) for index in range(5)]
    rows = [prediction(model, prediction_id=identifiers.first_id_at(moment)) for moment in moments]
    store.predictions.append([LogEntry((row,)) for row in rows])
    log_position = store.exports.log_position()
    for since, until, expected in ((None, None, 5), (moments[1], None, 4), (moments[1], moments[3], 2)):
        pages = store.exports.pages(
            model, "default", log_position=log_position, since=since, until=until, size=2
        )
        assert sum(len(page.ids) for page in pages) == expected
