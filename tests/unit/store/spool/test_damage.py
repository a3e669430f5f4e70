"""Writers that were killed within a record, and disks that lose bits."""

from pathlib import Path

import pytest

from lifelong_core.store import LogEntry
from lifelong_core.store.spool import framing
from tests.unit.store.samples import entry
from tests.unit.store.spool.waiting import drain, filled, open_spool, requests, segments


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "spool"


def write_segment(folder: Path, entries: list[LogEntry]) -> tuple[Path, list[int]]:
    """A segment with one record for each entry, and the size of the file before each."""
    spool, ends = open_spool(folder), [0]
    for one in entries:
        spool.append([one])
        ends.append(segments(folder)[0].stat().st_size)
    return segments(folder)[0], ends


def damaged_bytes(folder: Path) -> list[bytes]:
    file = folder / "damaged"
    return [one.body for one in open_spool(folder)._damaged.records()] if file.exists() else []


def restart(folder: Path, file: Path, data: bytes) -> None:
    """Leave the folder as a killed process did, with this segment in it."""
    for path in folder.iterdir():
        path.unlink()
    file.write_bytes(data)


def test_a_torn_tail_is_put_aside_wherever_the_writer_was_killed(folder: Path):
    entries = [entry("r1"), entry(), entry("r2", predictions=2)]
    file, ends = write_segment(folder, entries)
    data = file.read_bytes()
    late = entry("late")
    for cut in range(ends[1], len(data) + 1):
        restart(folder, file, data[:cut])
        whole = sum(end <= cut for end in ends[1:])
        spool = open_spool(folder)
        taken: list[LogEntry] = []
        # Whoever comes first puts it right.
        if cut % 3 == 0:
            assert spool.append([late]) == (True,)
        elif cut % 3 == 1:
            assert spool.state().predictions == sum(len(one.predictions) for one in entries[:whole])
        else:
            taken += drain(spool)
            assert spool.is_empty()
        # Whoever starts once more finds the same.
        spool = open_spool(folder)
        spool.append([late])
        taken += drain(spool)
        assert taken == [*entries[:whole], late]
        torn = data[ends[whole] : cut]
        assert damaged_bytes(folder) == ([torn] if torn else [])
        assert open_spool(folder).state().damaged_records == bool(torn)
        assert (spool.is_empty(), segments(folder)) == (True, [])


def check_flips(folder: Path) -> None:
    entries = [entry("r1"), entry("r2"), entry("r3"), entry()]
    file, ends = write_segment(folder, entries)
    data = file.read_bytes()
    for position in range(ends[1], ends[2]):
        restart(folder, file, data)
        flipped = bytearray(data)
        flipped[position] ^= 1 << position % 8
        file.write_bytes(flipped)
        spool = open_spool(folder)
        assert spool.find([entries[2].request])
        assert spool.append([entries[1]]) == (True,)
        assert drain(spool) == [entries[0], *entries[2:], entries[1]]
        assert damaged_bytes(folder) == [bytes(flipped[ends[1] : ends[2]])]
        assert spool.is_empty()


def test_a_flipped_bit_costs_the_record_that_it_is_in_and_nothing_else(folder: Path):
    check_flips(folder)


@pytest.mark.parametrize(
    "broken", ["checksum of the body", "check of the header", "search for the next record"]
)
def test_the_check_of_flipped_bits_can_fail(folder: Path, broken: str, monkeypatch: pytest.MonkeyPatch):
    if broken == "checksum of the body":
        monkeypatch.setattr(framing, "_checksum", lambda *_: b"\x00" * 8)
    elif broken == "check of the header":
        monkeypatch.setattr(framing.zlib, "crc32", lambda _: 0)
    else:
        monkeypatch.setattr("lifelong_core.store.spool.delivery.find_record", lambda *_, **__: None)
    with pytest.raises(AssertionError):
        check_flips(folder)


def test_damage_that_comes_while_the_records_wait_is_found_by_who_delivers(folder: Path):
    entries = requests(9)
    spool = filled(folder, entries)
    file = segments(folder)[0]
    data = bytearray(file.read_bytes())
    # Zeros over the third to fifth record, as a lost block of the disk.
    ends = write_segment(folder.with_name("probe"), entries)[1]
    data[ends[2] + 10 : ends[5] - 10] = bytes(ends[5] - ends[2] - 20)
    file.write_bytes(data)
    assert spool.find([entries[3].request]) == {}
    assert drain(spool, limit=1) == entries[:2] + entries[5:]
    assert damaged_bytes(folder) == [bytes(data[ends[2] : ends[5]])]
    assert spool.state().damaged_records == 1


def test_a_segment_of_garbage_or_of_nothing_holds_up_nothing(folder: Path):
    entries = requests(4)
    filled(folder, entries, segment_bytes=1)
    files = segments(folder)
    files[1].write_bytes(b"")
    files[2].write_bytes(b"garbage" * 1000)
    assert drain(open_spool(folder, segment_bytes=1)) == [entries[0], entries[3]]
    assert damaged_bytes(folder) == [b"garbage" * 1000]
    assert open_spool(folder).is_empty()


@pytest.mark.parametrize(
    "name",
    ["5.segment", "\u0663.segment", f"{5:021d}.segment", f"{2**64 + 5:020d}.segment", f"{'9' * 200}.segment"],
)
def test_a_foreign_file_whose_name_is_nearly_that_of_a_segment_is_let_alone(folder: Path, name: str):
    spool, entries = open_spool(folder), [entry("r1"), entry("r2")]
    spool.append(entries[:1])
    foreign = folder / name
    foreign.write_bytes(b"foreign")
    for one in (open_spool(folder), spool):
        assert not one.is_empty()
    spool.append(entries[1:])
    assert [one.request for one in drain(spool)] == [one.request for one in entries]
    assert open_spool(folder).is_empty()
    assert foreign.read_bytes() == b"foreign"


def test_a_process_that_knows_the_spool_sees_the_torn_tail_of_another(folder: Path):
    spool = open_spool(folder)
    first, second = entry("r1"), entry("r2")
    spool.append([first])
    with segments(folder)[0].open("ab") as stream:
        stream.write(b"\xf1Ls\xb0 and no more")
    assert spool.append([second]) == (True,)
    assert len(segments(folder)) == 2
    assert drain(spool) == [first, second]
    assert spool.state().damaged_records == 1


def test_torn_files_of_what_was_put_aside_are_added_to(folder: Path):
    for _ in range(2):
        spool = open_spool(folder)
        spool.append([entry()])
        segments(folder)[0].write_bytes(b"torn")
        assert drain(spool) == []
        with (folder / "damaged").open("ab") as stream:
            stream.write(b"\xf1Ls\xb0 torn itself")
    assert damaged_bytes(folder) == [b"torn", b"torn"]
    assert open_spool(folder).state().damaged_records == 2
