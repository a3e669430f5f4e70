"""Complete records are recognised anywhere, incomplete ones nowhere."""

import io

from hypothesis import given, settings
from hypothesis import strategies as st

from lifelong_core.store.spool.framing import (
    HEADER_BYTES,
    MAGIC,
    Record,
    find_record,
    pack_record,
    read_record,
    whole_records,
)

BODIES = st.lists(
    # Bodies that hold what begins a record, or a whole record, as a client's request id could.
    st.one_of(
        st.binary(max_size=200),
        st.just(MAGIC),
        st.just(pack_record(Record(1, b"hidden"), file=7)),
    ),
    max_size=8,
)
NUMBERS = st.integers(0, 2**32 - 1)


def pack(bodies: list[bytes], *, file: int = 7) -> bytes:
    data = b""
    for i, body in enumerate(bodies):
        data += pack_record(Record(i % 256, body, keys=i, predictions=2 * i, offset=len(data)), file=file)
    return data


def read(data: bytes, *, file: int = 7) -> list[bytes]:
    return [record.body for record in whole_records(io.BytesIO(data), file=file, offset=0, size=len(data))]


@settings(max_examples=40)
@given(BODIES, st.data())
def test_of_bytes_that_are_cut_or_not_the_whole_records_are_read(bodies: list[bytes], data: st.DataObject):
    packed = pack(bodies)
    records = list(whole_records(io.BytesIO(packed), file=7, offset=0, size=len(packed)))
    assert [(one.body, one.kind, one.keys, one.predictions) for one in records] == [
        (body, i, i, 2 * i) for i, body in enumerate(bodies)
    ]
    assert [one.offset for one in records] == [0, *(one.end for one in records)][: len(records)]
    cut = data.draw(st.integers(0, len(packed)))
    assert read(packed[:cut]) == [one.body for one in records if one.end <= cut]


@settings(max_examples=40)
@given(BODIES, st.data())
def test_one_changed_byte_costs_one_record(bodies: list[bytes], data: st.DataObject):
    packed = bytearray(pack([*bodies, b"last"]))
    position = data.draw(st.integers(0, len(packed) - 1))
    packed[position] ^= data.draw(st.integers(1, 255))
    damaged = next(i for i in range(len(bodies) + 1) if len(pack([*bodies, b"last"][: i + 1])) > position)
    assert read(bytes(packed)) == [body for i, body in enumerate([*bodies, b"last"]) if i != damaged]


@settings(max_examples=40)
@given(BODIES, st.binary(max_size=100), BODIES)
def test_strange_bytes_between_records_are_passed_over(
    before: list[bytes], strange: bytes, behind: list[bytes]
):
    data = pack(before) + strange
    for body in behind:
        data += pack_record(Record(1, body, offset=len(data)), file=7)
    assert read(data) == before + behind


def test_a_record_counts_only_where_it_was_written():
    record = pack_record(Record(1, b"body"), file=7)
    assert read(record) == [b"body"]
    assert read(record, file=8) == []
    assert read(b"\x00" + record) == []
    # Once that is damaged in which they hide, what a client has sent would be taken for a prediction.
    hiding = bytearray(pack([b"before", record, b"behind"]))
    hiding[len(pack([b"before"])) + 8] ^= 1
    assert read(bytes(hiding)) == [b"before", b"behind"]


def test_a_damaged_length_asks_for_no_memory():
    class Stream(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert size <= len(record)
            return super().read(size)

    record = bytearray(pack_record(Record(1, b"body"), file=7))
    for bit in range(32):
        flipped = bytearray(record)
        flipped[13 + bit // 8] ^= 1 << bit % 8
        assert read_record(Stream(bytes(flipped)), file=7, offset=0, size=len(record)) is None


@settings(max_examples=40)
@given(NUMBERS, NUMBERS)
def test_the_place_is_part_of_the_checks(file: int, offset: int):
    record = pack_record(Record(1, b"body", offset=offset), file=file)
    assert len(record) == HEADER_BYTES + 4
    assert find_record(b"??" + record, file=file, offset=offset - 2, after=offset - 2) == offset
    assert find_record(b"??" + record, file=file + 1, offset=offset - 2, after=offset - 2) is None


def test_a_search_is_not_slowed_down_by_bytes_that_look_like_records():
    data = MAGIC * 100_000
    assert find_record(data, file=7, offset=0, after=0) is None


def test_a_header_that_is_cut_is_no_record():
    data = pack_record(Record(1, b""), file=7)
    assert len(read(data)) == 1
    assert [cut for cut in range(HEADER_BYTES) if read(data[:cut])] == []
