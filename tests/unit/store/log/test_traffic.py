"""The token of each prediction is logged, also through the spool."""

from datetime import datetime

from lifelong_core.store import LogEntry, Store
from lifelong_core.store.log.identifiers import EPOCH, first_id_at, logged_on
from lifelong_core.store.spool.encoding import decode_entries, encode_entries
from tests.unit.store.samples import add_serving_model, entry, prediction

FIRST = first_id_at(EPOCH)


def sent_by(token_id: int | None, model_id: int, rows: int, request_id: str | None = None) -> LogEntry:
    made = entry(request_id, predictions=rows, model_id=model_id)
    return LogEntry(made.predictions, made.request, made.body_digest, token_id)


def test_predictions_are_counted_by_the_token_that_sent_them(store: Store):
    model, _ = add_serving_model(store)
    entries = [
        sent_by(3, model.id, 2, "r"),
        sent_by(None, model.id, 1),
        sent_by(7, model.id, 4, "s"),
        sent_by(3, model.id, 1),
    ]
    store.predictions.append(entries[:2])
    store.predictions.deliver(entries[1:])
    store.predictions.append([LogEntry((prediction(model.id, "elsewhere"),), token_id=9)])
    log_position = store.predictions.log_position()
    counts = store.traffic.senders(model.id, "default", first=FIRST, log_position=log_position)
    day = logged_on(entries[0].predictions[0].id)
    assert counts == {(3, day): 3, (None, day): 1, (7, day): 4}
    middle = entries[2].predictions[0].id
    counts = store.traffic.senders(model.id, "default", first=middle, log_position=log_position)
    assert counts == {(7, day): 4, (3, day): 1}
    counts = store.traffic.senders_before(model.id, "default", first=middle, limit=9)
    assert counts == {(3, day): 2, (None, day): 1}
    counts = store.traffic.senders_before(model.id, "default", first=middle, limit=2)
    assert counts == {(3, day): 1, (None, day): 1}
    assert store.traffic.hours(model.id, "default", "digest", since=datetime.now().astimezone()) == {}


def test_a_record_of_the_spool_keeps_the_token_or_that_there_is_none():
    entries = [sent_by(3, 1, 2, "r"), sent_by(None, 1, 1)]
    encoded = encode_entries(entries)
    assert decode_entries(encoded.body, encoded.keys) == entries
