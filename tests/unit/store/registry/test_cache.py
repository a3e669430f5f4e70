"""The registry on the disk: the same registry is read again, or an error says why not."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from lifelong_core.deploy import TargetValue
from lifelong_core.store import Registry, Scope, Store, promote_calibrated, register_calibration, start_trial
from lifelong_core.store.access.token_lookup import hash_secret
from lifelong_core.store.lifecycle.group_keys import KeyFile
from lifelong_core.store.registry.cache import RegistryCache
from lifelong_core.values.errors import UnavailableError
from lifelong_core.values.preprocessing import Preprocessing, Resize
from tests.databases import sqlite_only
from tests.unit.store.samples import CLASSES, COSTS, add_model, add_serving_model, calibration, head

URL = "postgresql://somebody:secret@db.example:5432/lifelong"


@pytest.fixture
def cache(tmp_path: Path) -> RegistryCache:
    return RegistryCache(tmp_path / "state" / "registry.json", database_url=URL)


def filled(store: Store) -> tuple[Registry, str]:
    """A registry with something of everything, and the secret of one of its tokens."""
    add_serving_model(store)
    store.tasks.add("lesions-2", CLASSES, COSTS, decision_rule=TargetValue("TPR", 1 / 3, 2), actor="me")
    add_model(store, "no-head")
    store.models.add(
        "lesions",
        "images",
        kind="onnx",
        onnx=b"graph",
        preprocessing=Preprocessing(resize=Resize(height=32, width=48), mean=(0.1, 0.2, 1 / 3)),
        actor="me",
    )
    _add_trial(store)
    store.heads.publish("dermatology", head(1 / 3), environment="site-a", actor="Ärztin")
    store.heads.pin("dermatology", environment="site-a", reason="under audit", actor="me")
    _, secret = store.tokens.create("ci", [Scope.READ, Scope.PREDICT], actor="me")
    store.tokens.create("gone", [Scope.ADMIN], actor="me")
    store.tokens.revoke("gone", actor="me")
    store.group_keys.confirm(KeyFile(Path("group.key"), (b"k" * 32, b"o" * 32)), actor="me")
    registry = store.registry()
    assert registry is not None
    return registry, secret


def _add_trial(store: Store) -> None:
    """A task with a canary, a model that a roll-back restores, and a released one."""
    for reference in ("mammography@1", "mammography@2", "mammography@3", "mammography@4"):
        store.models.add(
            "lesions-2",
            "mammography",
            kind="onnx",
            onnx=reference.encode(),
            preprocessing=Preprocessing(),
            actor="me",
        )
        register_calibration(store, reference, calibration(), actor="me")
        if reference != "mammography@4":
            promote_calibrated(store, reference, actor="me")
    start_trial(store, "mammography@4", stage="canary", share=1 / 3, actor="me")


def test_the_same_registry_comes_back_to_the_last_bit(store: Store, cache: RegistryCache):
    registry, secret = filled(store)
    assert cache.load() is None
    assert cache.revision() is None
    cache.save(registry)
    assert cache.load() == registry
    assert cache.revision() == registry.revision
    assert registry.tokens[hash_secret(secret)].name == "ci"
    assert [token.name for token in registry.tokens.values()] == ["ci"]


@sqlite_only
def test_a_task_is_written_with_its_decision_rule(store: Store, cache: RegistryCache):
    cache.save(filled(store)[0])
    tasks = {task["name"]: task for task in json.loads(cache.path.read_text())["registry"]["tasks"]}
    assert sorted(tasks) == ["lesions", "lesions-2"]
    assert tasks["lesions"]["decision_rule"] == {"kind": "bayes"}
    assert tasks["lesions-2"]["decision_rule"] == {
        "kind": "target_value",
        "metric": "TPR",
        "value": 1 / 3,
        "positive_class": 2,
    }


@sqlite_only
def test_the_file_is_its_owners_and_holds_no_secret(store: Store, cache: RegistryCache):
    registry, secret = filled(store)
    old = os.umask(0)
    try:
        cache.save(registry)
    finally:
        os.umask(old)
    assert cache.path.stat().st_mode & 0o777 == 0o600
    text = cache.path.read_text()
    assert secret not in text
    assert "db.example" not in text
    assert sorted(path.name for path in cache.path.parent.iterdir()) == ["registry.json"]


@sqlite_only
def test_wherever_the_file_is_cut_or_changed_it_is_refused(store: Store, cache: RegistryCache):
    registry, _ = filled(store)
    cache.save(registry)
    whole, survived = cache.path.read_bytes(), 0
    for place in range(0, len(whole), 97):
        flipped = whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
        for damaged in (whole[:place], flipped):
            cache.path.write_bytes(damaged)
            try:
                loaded = cache.load()
            except UnavailableError as error:
                assert "registry.json" in str(error)  # noqa: PT017
            else:
                # The last digit of a number may stand for the same float.
                assert (len(damaged), loaded) == (len(whole), registry)
                survived += 1
    assert survived <= 2
    cache.path.write_bytes(whole)
    assert cache.load() == registry


@sqlite_only
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"schema_version": 2}, "schema version 2, expected 1"),
        ({"checksum": "0" * 64}, "checksum"),
        ({"extra": 1}, "checksum"),
    ],
)
def test_another_version_or_checksum_is_refused_with_words(
    store: Store, cache: RegistryCache, change: dict[str, object], words: str
):
    cache.save(filled(store)[0])
    document = json.loads(cache.path.read_text())
    cache.path.write_text(json.dumps(document | change))
    with pytest.raises(UnavailableError, match=words):
        cache.load()


@sqlite_only
def test_the_registry_of_another_database_is_refused(store: Store, cache: RegistryCache):
    registry, _ = filled(store)
    cache.save(registry)
    same = RegistryCache(cache.path, database_url="postgresql+psycopg://else:word@db.example:5432/lifelong")
    assert same.load() == registry
    other = RegistryCache(cache.path, database_url="postgresql://somebody:secret@db.example:5432/other")
    with pytest.raises(UnavailableError, match="another database"):
        other.load()
    other.save(registry)
    with pytest.raises(UnavailableError, match="another database"):
        cache.load()


@sqlite_only
def test_what_is_damaged_and_the_last_good_head_are_kept_too(store: Store, cache: RegistryCache):
    registry, _ = filled(store)
    place = next(iter(registry.heads))
    changed = replace(registry, damaged=MappingProxyType({place: "head 9 is damaged: by hand"}))
    cache.save(changed)
    assert cache.load() == changed


@sqlite_only
def test_drafts_of_killed_writers_are_swept_away_and_those_of_living_ones_are_not(
    store: Store, cache: RegistryCache
):
    registry, _ = filled(store)
    cache.save(registry)
    dead, alive = (cache.path.with_name(f"registry.json.{name}") for name in ("dead", "alive"))
    for draft in (dead, alive):
        draft.write_text("{")
    long_ago = time.time() - 7200
    os.utime(dead, (long_ago, long_ago))
    cache.save(registry)
    assert (dead.exists(), alive.exists()) == (False, True)


@sqlite_only
def test_a_folder_that_cannot_be_written_is_explained(store: Store, tmp_path: Path):
    registry, _ = filled(store)
    (tmp_path / "file").write_text("no folder")
    cache = RegistryCache(tmp_path / "file" / "registry.json", database_url=URL)
    with pytest.raises(UnavailableError, match="cannot be written"):
        cache.save(registry)
    with pytest.raises(UnavailableError, match="cannot be read"):
        cache.load()
