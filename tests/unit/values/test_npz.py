"""Damaged files are errors of the client, whatever the damage."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.npz import LONGEST_HEADER, MAXIMUM_ENTRIES, read_array_header, read_npz


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_any_damage_is_an_input_error(save):
    file = io.BytesIO()
    save(file, labels=np.arange(60) % 2, logits=np.random.default_rng(0).normal(size=(60, 2)))
    whole, rng = file.getvalue(), np.random.default_rng(1)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] = rng.integers(256)
        try:
            read_npz(bytes(damaged), ("labels", "logits"), field="npz")
        except InvalidInputError:
            refused += 1
    assert refused > 100


def test_what_is_encrypted_or_compressed_otherwise_is_an_input_error():
    file = io.BytesIO()
    np.savez(file, labels=np.arange(3))
    whole = file.getvalue()
    directory = whole.index(b"PK\x01\x02")
    for place, value in ((8, 1), (10, 99), (6, 99)):  # flags, method and version of its one entry
        changed = bytearray(whole)
        changed[directory + place] = value
        with pytest.raises(InvalidInputError, match="that is whole"):
            read_npz(bytes(changed), ("labels",), field="npz")


def packed(method=zipfile.ZIP_DEFLATED, **arrays):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", content.getvalue())
    return file.getvalue()


@pytest.mark.parametrize(
    ("array", "size"),
    [
        (np.zeros((10, 3)), 240),
        (np.zeros((10, 3), np.float32), 240),
        (np.zeros(30, bool), 240),
        (np.zeros(3, "U100"), 1200),
        (np.zeros(3, "S100"), 300),
    ],
)
def test_numbers_count_with_eight_bytes_and_texts_with_their_own(array, size):
    content = packed(labels=np.tile(array, (100, 1)))  # so that the header of the file is small beside it
    size *= 100
    found = read_npz(content, ("labels",), field="npz", maximum_bytes=size + 128)
    assert len(found["labels"]) == 100 * (len(array) if array.ndim > 1 else 1)
    with pytest.raises(PayloadTooLargeError, match="unpacks to"):
        read_npz(content, ("labels",), field="npz", maximum_bytes=size - 1)


def test_nothing_is_unpacked_beyond_what_is_accepted():
    zeros = np.zeros(20_000_000, np.int8)
    lying = bytearray(packed(labels=zeros))
    place = lying.index(b"PK\x01\x02") + 24
    lying[place : place + 4] = (1000).to_bytes(4, "little")
    contents = [packed(labels=zeros), packed(zipfile.ZIP_BZIP2, labels=zeros), bytes(lying)]
    contents.append(packed(labels=np.zeros(3), other=zeros))
    tracemalloc.start()
    for content in contents:
        with pytest.raises(InvalidInputError):
            read_npz(content, ("labels",), field="npz", maximum_bytes=1_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000
    assert len(read_npz(contents[0], ("labels",), field="npz")["labels"]) == len(zeros)


def test_a_directory_of_many_entries():
    for entries in (MAXIMUM_ENTRIES, MAXIMUM_ENTRIES + 1):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for entry in range(entries):
                archive.writestr(f"{entry}.npy", b"")
        expected = InvalidInputError if entries == MAXIMUM_ENTRIES else PayloadTooLargeError
        with pytest.raises(InvalidInputError) as caught:
            read_npz(file.getvalue(), ("labels",), field="npz")
        assert type(caught.value) is expected


def entry(descr: object, shape: str, *, version: int = 1, header: str | None = None) -> bytes:
    """An array whose header declares more than follows, which is nothing."""
    text = header or f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(2 * version, "little") + text.encode()


BOMBS = {
    "texts of no characters": {"labels": entry("<U0", "(1000000000,)")},
    "bytes of no characters": {"labels": entry("|S0", "(1000000000, 3)")},
    "a negative shape that makes room": {
        "labels": entry("<f8", "(1000000000, 3)"),
        "logits": entry("<f8", "(-9000000000,)"),
    },
    "objects": {"labels": entry("|O", "(3,)") + b"cos\nsystem\n(S'true'\ntR."},
    "a header of megabytes": {"labels": entry("", "", version=2, header=" " * 20_000_000 + "{}")},
}


@pytest.mark.parametrize("entries", BOMBS.values(), ids=BOMBS)
def test_a_small_file_becomes_no_large_array(entries: dict[str, bytes]) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(f"{name}.npy", content)
    tracemalloc.start()
    with pytest.raises(InvalidInputError):
        read_npz(file.getvalue(), ("labels",), ("logits",), field="npz", maximum_bytes=32_000_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused() -> None:
    file = io.BytesIO(packed(labels=np.zeros(3)))
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labels.npy", archive.read("labels.npy"))
    with pytest.raises(InvalidInputError, match="that is whole"):
        read_npz(file.getvalue(), ("labels",), field="npz")


class CountingStream(io.BytesIO):
    """Remembers how many bytes were asked for at once."""

    largest = 0

    def read(self, size=-1, /):
        self.largest = max(self.largest, size)
        return super().read(size)


def test_a_header_that_says_to_be_huge_is_not_read():
    stream = CountingStream(b"\x93NUMPY\x02\x00" + (2**32 - 1).to_bytes(4, "little") + b" " * 100_000)
    with pytest.raises(InvalidInputError, match="npy format"):
        read_array_header(stream, field="labels")
    assert stream.largest < LONGEST_HEADER


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_after_the_header_the_stream_is_at_the_numbers(version):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.arange(6.0).reshape(2, 3), version=version)
    stream.seek(0)
    assert read_array_header(stream, field="labels") == ((2, 3), np.dtype(float))
    assert np.frombuffer(stream.read()).tolist() == [0, 1, 2, 3, 4, 5]
