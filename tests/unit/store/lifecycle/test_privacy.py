import stat
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifelong_core.store import group_hash, load_group_key
from lifelong_core.store.lifecycle.privacy import (
    group_hashes,
    load_group_keys,
    number_groups,
    rotate_group_key,
)
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError


def test_a_group_hash_depends_on_key_and_group_and_is_short():
    key, other = b"k" * 32, b"o" * 32
    assert group_hash(key, "patient-1") == group_hash(key, "patient-1")
    assert (
        len({group_hash(key, "patient-1"), group_hash(key, "patient-2"), group_hash(other, "patient-1")}) == 3
    )
    assert len(group_hash(key, "patient-1")) == 16


def test_a_key_is_made_once_and_only_its_owner_reads_it(tmp_path: Path):
    file = tmp_path / "data" / "group.key"
    key = load_group_key(file, create=True)
    assert len(key) == 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_group_key(file, create=True) == key == load_group_key(file, create=False)
    assert list(file.parent.iterdir()) == [file]


def test_keys_of_two_installations_differ(tmp_path: Path):
    assert load_group_key(tmp_path / "a", create=True) != load_group_key(tmp_path / "b", create=True)


def test_processes_that_make_the_key_at_once_agree(tmp_path: Path):
    file = tmp_path / "group.key"
    start = threading.Barrier(8)
    keys: list[bytes] = []

    def work() -> None:
        start.wait()
        keys.append(load_group_key(file, create=True))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8
    assert len(set(keys)) == 1


def test_a_missing_key_names_the_hint(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="lifelong init"):
        load_group_key(tmp_path / "group.key", create=False)


def test_a_file_without_an_end_of_line_is_read(tmp_path: Path):
    (tmp_path / "group.key").write_text("ab" * 32)
    assert load_group_key(tmp_path / "group.key", create=True) == b"\xab" * 32


def test_a_rotation_puts_a_new_key_before_the_old_ones(tmp_path: Path):
    file = tmp_path / "group.key"
    first = load_group_key(file, create=True)
    assert rotate_group_key(file) == 2
    second = load_group_key(file, create=True)
    assert rotate_group_key(file) == 3
    third = load_group_key(file, create=False)
    assert load_group_keys(file) == (third, second, first)
    assert len({first, second, third}) == 3
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]
    assert group_hashes((third, first), "patient") == (
        group_hash(third, "patient"),
        group_hash(first, "patient"),
    )


def test_rotations_at_once_lose_no_key(tmp_path: Path):
    file = tmp_path / "group.key"
    seen = {load_group_key(file, create=True)}
    start = threading.Barrier(6)

    def work() -> None:
        start.wait()
        for _ in range(20):
            try:
                rotate_group_key(file)
            except ConflictError:
                continue
            seen.add(load_group_key(file, create=False))

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen <= set(load_group_keys(file))
    assert list(tmp_path.iterdir()) == [file]


def test_a_rotation_that_was_interrupted_changed_nothing_and_is_named(tmp_path: Path):
    file = tmp_path / "group.key"
    key = load_group_key(file, create=True)
    (tmp_path / "group.key.rotating").write_text("half")
    with pytest.raises(ConflictError, match=r"delete .*group\.key\.rotating"):
        rotate_group_key(file)
    assert load_group_keys(file) == (key,)


def test_nothing_is_rotated_where_there_is_no_key_or_a_damaged_one(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="does not exist"):
        rotate_group_key(tmp_path / "group.key")
    (tmp_path / "group.key").write_text("ab" * 32 + "\nnone\n")
    with pytest.raises(ConfigurationError, match="backup"):
        rotate_group_key(tmp_path / "group.key")
    assert [file.name for file in tmp_path.iterdir()] == ["group.key"]
    with pytest.raises(ConfigurationError, match="cannot be written"):
        rotate_group_key(tmp_path / "nowhere" / "group.key")


def test_an_empty_group_is_none():
    with pytest.raises(InvalidInputError, match="patient or study"):
        group_hashes([b"k" * 32], "")


@pytest.mark.parametrize("content", ["", "no hexadecimal", "abcd", "ü", "ab" * 32 + "\nabcd"])
def test_a_damaged_key_is_refused(tmp_path: Path, content: str):
    file = tmp_path / "group.key"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="backup"):
        load_group_key(file, create=True)


def test_a_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        load_group_key(tmp_path / "file" / "group.key", create=True)


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["4711", "12", "a", "Z", ""])))
def test_numbers_say_which_samples_belong_together_and_nothing_of_their_keys(keys: list[str]):
    numbers = number_groups(np.array(keys, dtype=np.str_))
    assert numbers is not None
    assert numbers.dtype == np.int64
    assert numbers.tolist() == [list(dict.fromkeys(keys)).index(key) for key in keys]


def test_samples_without_groups_stay_without():
    assert number_groups(None) is None
    assert number_groups(np.array([7.5, -1.0, 7.5])).tolist() == [0, 1, 0]  # type: ignore[union-attr]
