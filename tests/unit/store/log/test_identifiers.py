import threading
from datetime import UTC, date, datetime, timedelta
from uuid import UUID, uuid1, uuid4

import pytest

from lifelong_core.store import logged_at, logged_on, new_prediction_id
from lifelong_core.store.log import identifiers
from lifelong_core.store.log.identifiers import (
    PredictionIds,
    first_id_at,
    is_prediction_id,
    shadow_prediction_id,
)


def test_an_id_is_a_uuid_of_version_7():
    made = new_prediction_id()
    assert made.version == 7
    assert made.variant == "specified in RFC 4122"


def test_an_id_holds_the_time_at_which_it_was_made():
    before = datetime.now(UTC)
    made = logged_at(new_prediction_id())
    assert before - timedelta(milliseconds=1) <= made <= datetime.now(UTC)


def test_ids_grow_strictly_within_one_millisecond(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(identifiers.time, "time_ns", lambda: 1_700_000_000_123_456_789)
    ids = PredictionIds()
    made = [ids.next(1)[0] for _ in range(5000)]
    assert made == sorted(set(made))
    assert {logged_at(one) for one in made} == {datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)}


def test_ids_grow_although_the_clock_steps_back(monkeypatch: pytest.MonkeyPatch):
    times = iter([2_000_000_000, 1_000_000_000, 1_500_000_000, 3_000_000_000])
    monkeypatch.setattr(identifiers.time, "time_ns", lambda: next(times))
    ids = PredictionIds()
    made = [ids.next(1)[0] for _ in range(4)]
    assert made == sorted(made)


def test_ids_follow_a_clock_that_is_set_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    hour = 3600 * 10**9
    times = iter([9 * hour, 8 * hour, 8 * hour + 10**9])
    monkeypatch.setattr(identifiers.time, "time_ns", lambda: next(times))
    ids = PredictionIds()
    made = [logged_at(ids.next(1)[0]) for _ in range(3)]
    assert [moment.timestamp() for moment in made] == [9 * 3600, 8 * 3600, 8 * 3600 + 1]
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "the clock was set back by 3600 s"
    ]


def test_ids_go_on_in_the_next_millisecond_when_the_random_bits_run_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(identifiers.time, "time_ns", lambda: 5_000_000)
    monkeypatch.setattr(identifiers.secrets, "randbits", lambda bits: 2**bits - 1)
    ids = PredictionIds()
    first, second = ids.next(1)[0], ids.next(1)[0]
    assert first < second
    assert logged_at(second) - logged_at(first) == timedelta(milliseconds=1)


def test_threads_never_get_the_same_id():
    ids = PredictionIds()
    made: list[list[object]] = [[] for _ in range(4)]

    def work(into: list[object]) -> None:
        into.extend(ids.next(1)[0] for _ in range(2000))

    threads = [threading.Thread(target=work, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for part in made for one in part}) == 8000
    assert all(part == sorted(part) for part in made)  # type: ignore[type-var]


def test_the_day_is_that_of_utc(monkeypatch: pytest.MonkeyPatch):
    midnight = datetime(2026, 3, 1, tzinfo=UTC)
    monkeypatch.setattr(identifiers.time, "time_ns", lambda: (int(midnight.timestamp() * 1000) - 1) * 10**6)
    assert logged_on(PredictionIds().next(1)[0]) == date(2026, 2, 28)
    monkeypatch.setattr(identifiers.time, "time_ns", lambda: int(midnight.timestamp()) * 10**9)
    assert logged_on(PredictionIds().next(1)[0]) == date(2026, 3, 1)


def test_the_first_id_of_a_moment_divides_earlier_from_later_ids(monkeypatch: pytest.MonkeyPatch):
    moment = datetime(2026, 3, 1, 12, 0, 0, 250000, tzinfo=UTC)
    milliseconds = 1772366400250
    first = first_id_at(moment)
    assert logged_at(first) == moment
    for offset, is_later in ((-1, False), (0, True), (1, True)):
        now = milliseconds + offset
        monkeypatch.setattr(identifiers.time, "time_ns", lambda now=now: now * 10**6)
        assert (PredictionIds().next(1)[0] >= first) is is_later


def test_only_a_uuid_7_with_a_time_of_our_calendar_can_be_a_prediction():
    last = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)
    assert is_prediction_id(new_prediction_id())
    assert is_prediction_id(first_id_at(last))
    assert logged_on(first_id_at(last)) == date(9999, 12, 31)
    assert not is_prediction_id(UUID(int=first_id_at(last).int + (1 << 80)))
    assert not any(is_prediction_id(stranger) for stranger in (uuid4(), uuid1(), UUID(int=0)))


def test_the_id_of_a_shadow_follows_from_the_served_one() -> None:
    served = [PredictionIds().next(1)[0] for _ in range(50)]
    shadows = [shadow_prediction_id(one) for one in served]
    assert shadows == [shadow_prediction_id(one) for one in served]
    assert len({*served, *shadows}) == 100
    for one, shadow in zip(served, shadows, strict=True):
        assert is_prediction_id(shadow)
        assert logged_at(shadow) == logged_at(one)


def test_ids_of_one_call_grow_like_those_of_single_calls() -> None:
    ids = PredictionIds()
    made = [*ids.next(3), *ids.next(1), *ids.next(1000)]
    assert made == sorted(set(made))
    assert ids.next(0) == []
