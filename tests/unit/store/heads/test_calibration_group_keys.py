"""No stored calibration set holds the key of a patient or study."""

from pathlib import Path
from zipfile import ZipFile, is_zipfile

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.store import Model, Store, register_calibration
from tests.databases import sqlite_only
from tests.unit.store.samples import add_model, calibration

KEY = "patient-4711"


def with_keys(seed: int = 0, samples: int = 120) -> LabeledLogits:
    data = calibration(seed, samples)
    return LabeledLogits(
        data.logits, data.labels, np.array([f"{KEY}-{index // 2}" for index in range(samples)])
    )


def stored(store: Store) -> bytes:
    """All artifacts, npz files unpacked."""
    root = Path(store.artifacts._root)  # pyright: ignore[reportPrivateUsage]
    contents: list[bytes] = []
    for path in root.rglob("*"):
        if path.is_file() and is_zipfile(path):
            with ZipFile(path) as archive:
                contents += map(archive.read, archive.namelist())
        elif path.is_file():
            contents.append(path.read_bytes())
    return b"".join(contents)


def holds_key(content: bytes) -> bool:
    return any(KEY.encode(encoding) in content for encoding in ("ascii", "utf-32-le"))


def active_set(store: Store, model: Model) -> LabeledLogits:
    set_id = store.models.get(model.reference).calibration_set_id
    assert set_id is not None
    return store.calibration_sets.load(set_id)


def groups_of(data: LabeledLogits) -> list[int]:
    assert data.groups is not None
    return data.groups.tolist()


def test_the_search_finds_a_key(store: Store):
    store.artifacts.put(with_keys().to_bytes())
    assert holds_key(stored(store))


@sqlite_only
@pytest.mark.parametrize("way", ["add", "register"])
def test_a_set_is_stored_without_its_group_keys(store: Store, way: str):
    model = add_model(store)
    if way == "add":
        store.calibration_sets.add(model.reference, with_keys(), actor="me")
    else:
        register_calibration(store, model.reference, with_keys(), actor="me")
    assert not holds_key(stored(store))
    kept = active_set(store, model)
    assert groups_of(kept) == [index // 2 for index in range(120)]
    assert np.array_equal(kept.logits, with_keys().logits)


@sqlite_only
def test_integers_are_keys_as_well(store: Store):
    model = add_model(store)
    data = calibration()
    patients = np.repeat([4711, 12, 99], 40)
    store.calibration_sets.add(model.reference, LabeledLogits(data.logits, data.labels, patients), actor="me")
    assert groups_of(active_set(store, model)) == np.repeat([0, 1, 2], 40).tolist()


@sqlite_only
def test_a_head_names_the_set_that_is_stored(store: Store):
    model = add_model(store)
    record = register_calibration(store, model.reference, with_keys(), actor="me")
    of_head = store.calibration_sets.of_head(record)
    assert of_head.fitted_on is not None
    assert of_head.fitted_on == of_head.active
