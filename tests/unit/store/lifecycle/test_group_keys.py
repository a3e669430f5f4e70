"""The database holds digests of the group keys: two hosts with different keys are detected."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from lifelong_core.store import Scope, Store, load_group_key
from lifelong_core.store.lifecycle.group_keys import (
    GroupKeyError,
    KeyFile,
    check_complete,
    hashing_key,
    key_digest,
    short_digest,
)
from lifelong_core.store.lifecycle.privacy import rotate_group_key
from lifelong_core.values.errors import ConflictError
from tests.databases import sqlite_only
from tests.unit.store.at_once import at_once


@pytest.fixture
def first(store: Store, tmp_path: Path) -> Path:
    """The key file of the host that made the installation."""
    path = tmp_path / "first" / "group.key"
    store.group_keys.create(path, actor="first")
    store.tokens.create("admin", [Scope.ADMIN], actor="first")
    return path


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A key file of a host's own, as versions before the fifth schema made them."""
    path = tmp_path / "other" / "group.key"
    load_group_key(path, create=True)
    return path


def copy(source: Path, target: Path) -> Path:
    target.parent.mkdir(exist_ok=True)
    target.write_bytes(source.read_bytes())
    return target


def test_a_digest_is_no_hash_of_a_group_and_differs_by_key() -> None:
    one, two = key_digest(b"a" * 32), key_digest(b"b" * 32)
    assert one != two
    assert re.fullmatch(r"[0-9a-f]{64}", one)
    assert ("a" * 8).encode().hex() not in one
    assert len(short_digest(one)) == 8


def test_the_first_host_makes_the_key_and_a_further_one_does_not(
    store: Store, first: Path, tmp_path: Path
) -> None:
    assert store.group_keys.known_digests() == KeyFile.load(first).digests
    second = tmp_path / "second" / "group.key"
    with pytest.raises(GroupKeyError, match=r"no key file.*[Cc]opy"):
        store.group_keys.create(second, actor="second")
    assert not second.exists()
    copy(first, second)
    assert store.group_keys.create(second, actor="second").digests == store.group_keys.known_digests()
    assert store.registry().group_keys == store.group_keys.known_digests()  # type: ignore[union-attr]


def test_an_installation_in_use_whose_key_is_not_known_gets_none_from_a_host_without_a_file(
    store: Store, tmp_path: Path, other: Path
) -> None:
    store.tokens.create("admin", [Scope.ADMIN], actor="tests")
    with pytest.raises(GroupKeyError, match="Run `lifelong init` there first"):
        store.group_keys.create(tmp_path / "second" / "group.key", actor="second")
    assert store.group_keys.known_digests() == ()
    # The first host has its file from before.
    assert store.group_keys.create(other, actor="first").digests == store.group_keys.known_digests()


def succeeds(step: Callable[[], object]) -> bool:
    try:
        step()
    except GroupKeyError:
        return False
    return True


def test_of_two_hosts_that_begin_at_once_one_decides(
    store: Store, artifacts_url: str, tmp_path: Path
) -> None:
    paths = [tmp_path / str(number) / "group.key" for number in range(4)]

    def begin(path: Path) -> Callable[[Store], bool]:
        return lambda own: succeeds(lambda: own.group_keys.create(path, actor="host"))

    made = at_once(store, artifacts_url, *map(begin, paths))
    assert sorted(made) == [False, False, False, True]
    assert [path.exists() for path in paths] == made
    assert store.group_keys.known_digests() == KeyFile.load(paths[made.index(True)]).digests


def test_of_hosts_with_a_key_on_a_database_without_one_the_first_to_start_decides(
    store: Store, artifacts_url: str, tmp_path: Path
) -> None:
    paths = [tmp_path / str(number) / "group.key" for number in range(4)]
    files = [(load_group_key(path, create=True), KeyFile.load(path))[1] for path in paths]

    def start(file: KeyFile) -> Callable[[Store], tuple[str, ...]]:
        return lambda own: own.group_keys.confirm(file, actor="service")

    known = at_once(store, artifacts_url, *map(start, files))
    assert set(known) == {store.group_keys.known_digests()}
    assert store.group_keys.known_digests() in [file.digests for file in files]
    assert len([entry for entry in store.audit.list() if entry.action == "group_keys.record"]) == 1


@sqlite_only
def test_another_key_neither_hashes_nor_erases_nor_rotates(store: Store, first: Path, other: Path) -> None:
    known = store.group_keys.known_digests()
    file = KeyFile.load(other)
    with pytest.raises(GroupKeyError, match=r"another key.*LIFELONG_GROUP_KEY_FILE"):
        hashing_key(file, known)
    for refused in (store.group_keys.erasing_keys, store.group_keys.rotate):
        with pytest.raises(GroupKeyError, match="another key"):
            refused(other, actor="other")
    assert store.group_keys.confirm(file, actor="other") == known
    assert KeyFile.load(other) == file
    assert store.group_keys.erasing_keys(first, actor="first") == KeyFile.load(first).keys


def test_before_the_database_knows_a_key_nothing_is_hashed(other: Path) -> None:
    with pytest.raises(GroupKeyError, match="not confirmed"):
        hashing_key(KeyFile.load(other), ())


@sqlite_only
def test_after_a_rotation_other_hosts_go_on_with_the_old_key_and_do_not_erase(
    store: Store, first: Path, tmp_path: Path
) -> None:
    second = copy(first, tmp_path / "second" / "group.key")
    rotated = store.group_keys.rotate(first, actor="first")
    known = store.group_keys.known_digests()
    assert known == rotated.digests
    assert len(known) == 2
    assert hashing_key(rotated, known) == rotated.keys[0]
    older = KeyFile.load(second)
    assert hashing_key(older, known) == rotated.keys[1]
    with pytest.raises(GroupKeyError, match="is older than the installation's"):
        store.group_keys.erasing_keys(second, actor="second")
    with pytest.raises(GroupKeyError, match="is older"):
        store.group_keys.rotate(second, actor="second")
    copy(first, second)
    assert store.group_keys.erasing_keys(second, actor="second") == rotated.keys


def test_a_rotation_that_died_before_the_database_knew_it_is_recovered(
    store: Store, first: Path, tmp_path: Path
) -> None:
    before = store.group_keys.known_digests()
    rotate_group_key(first)  # the process died here
    file = KeyFile.load(first)
    assert hashing_key(file, before) == file.keys[1], "no hash under a key that the database does not know"
    assert store.group_keys.confirm(file, actor="service") == file.digests
    assert store.group_keys.known_digests() == (file.digests[0], *before)
    rotate_group_key(first)
    assert store.group_keys.erasing_keys(first, actor="first") == KeyFile.load(first).keys
    rotate_group_key(first)
    assert len(store.group_keys.rotate(first, actor="first").digests) == 5
    assert store.group_keys.known_digests() == KeyFile.load(first).digests


def test_rotations_on_two_hosts_at_once_lose_no_key(
    store: Store, artifacts_url: str, first: Path, tmp_path: Path
) -> None:
    second = copy(first, tmp_path / "second" / "group.key")

    def rotate(path: Path) -> Callable[[Store], bool]:
        return lambda own: succeeds(lambda: own.group_keys.rotate(path, actor="host"))

    done = at_once(store, artifacts_url, rotate(first), rotate(second))
    assert sorted(done) == [False, True]
    assert store.group_keys.known_digests() == KeyFile.load(first if done[0] else second).digests


@sqlite_only
def test_installing_a_copy_sets_a_key_aside_that_the_database_has_never_known(
    store: Store, first: Path, other: Path
) -> None:
    own, known = KeyFile.load(other), store.group_keys.known_digests()
    installed = store.group_keys.install(other, KeyFile.load(first), actor="other")
    assert KeyFile.load(other).keys == installed.file.keys == KeyFile.load(first).keys
    assert installed.set_aside is not None
    for path, keys in ((other, KeyFile.load(first).keys), (installed.set_aside, own.keys)):
        assert KeyFile.load(path).keys == keys
        assert path.stat().st_mode & 0o777 == 0o600
    # The first host is as it was.
    assert store.group_keys.known_digests() == known
    assert store.group_keys.erasing_keys(first, actor="first") == KeyFile.load(first).keys
    check_complete(KeyFile.load(first), store.group_keys.known_digests())
    again = store.group_keys.install(other, KeyFile.load(first), actor="other")
    assert again.set_aside is None


def test_a_copy_with_a_newer_key_than_the_database_knows_tells_it(
    store: Store, first: Path, tmp_path: Path
) -> None:
    known = store.group_keys.known_digests()
    rotate_group_key(first)  # the process died here
    store.group_keys.install(tmp_path / "second" / "group.key", KeyFile.load(first), actor="second")
    assert store.group_keys.known_digests() == (KeyFile.load(first).digests[0], *known)


@sqlite_only
def test_only_a_complete_copy_is_installed(store: Store, first: Path, other: Path, tmp_path: Path) -> None:
    second = tmp_path / "second" / "group.key"
    with pytest.raises(GroupKeyError, match="another key"):
        store.group_keys.install(second, KeyFile.load(other), actor="second")
    older = KeyFile.load(copy(first, tmp_path / "older" / "group.key"))
    store.group_keys.rotate(first, actor="first")
    with pytest.raises(GroupKeyError, match="is older"):
        store.group_keys.install(second, older, actor="second")
    assert not second.exists()


@sqlite_only
def test_keys_that_are_lost_are_forgotten_on_purpose_only(store: Store, first: Path) -> None:
    store.group_keys.rotate(first, actor="first")
    file = KeyFile.load(first)
    first.write_text(f"{file.keys[0].hex()}\n")
    with pytest.raises(GroupKeyError, match=r"lacks 1 of 2 keys.*forget-group-keys"):
        store.group_keys.erasing_keys(first, actor="first")
    lost = store.group_keys.forgettable(first)
    assert lost == (file.digests[1],)
    with pytest.raises(ConflictError):
        store.group_keys.forget(first, (), actor="first")
    store.group_keys.forget(first, lost, actor="first")
    assert store.group_keys.known_digests() == (file.digests[0],)
    assert store.group_keys.erasing_keys(first, actor="first") == (file.keys[0],)

    first.unlink()
    with pytest.raises(GroupKeyError, match=r"no key file.*backup"):
        store.group_keys.erasing_keys(first, actor="first")
    made = store.group_keys.forget(first, store.group_keys.forgettable(first), actor="first")
    assert store.group_keys.known_digests() == made.digests != (file.digests[0],)
    actions = [entry.action for entry in store.audit.list()]
    assert actions.count("group_keys.forget") == 2
    assert file.keys[0].hex() not in str(store.audit.list())


@sqlite_only
def test_a_file_with_more_keys_than_the_database_knows_is_complete(store: Store, first: Path) -> None:
    known = store.group_keys.known_digests()
    with first.open("a") as file:
        file.write("ab" * 32 + "\n")
    check_complete(KeyFile.load(first), known)
    assert store.group_keys.confirm(KeyFile.load(first), actor="first") == known
