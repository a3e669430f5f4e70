import stat
import threading
from pathlib import Path

import pytest

from lifelong_core.errors import ConfigurationError
from lifelong_core.store import group_hash, load_group_key


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


def test_a_missing_key_names_the_mend(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="lifelong init"):
        load_group_key(tmp_path / "group.key", create=False)


@pytest.mark.parametrize("content", ["", "no hexadecimal", "abcd", "ü"])
def test_a_damaged_key_is_refused(tmp_path: Path, content: str):
    file = tmp_path / "group.key"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="backup"):
        load_group_key(file, create=True)


def test_a_folder_that_cannot_be_made_is_a_configuration_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigurationError, match="cannot be written"):
        load_group_key(tmp_path / "file" / "group.key", create=True)
