"""Files that are damaged are the sender's to mend, whatever the damage is."""

import io

import numpy as np
import pytest

from lifelong_core.deploy.npz import read_npz
from lifelong_core.errors import InvalidInputError


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
