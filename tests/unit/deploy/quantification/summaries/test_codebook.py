"""Each summarising process learns the codebook again: it must not depend on the processor or on threads."""

import os
import subprocess
import sys

import pytest

LEARN = """
import hashlib
import numpy as np
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.quantification.codebook import Codebook

rng = np.random.default_rng(3)
labels = np.tile(np.arange(3), 120)
logits = (2 * np.eye(3)[labels] + rng.normal(size=(360, 3))).astype(np.float32)
for order in ([0, 1, 2], [1, 0, 2]):  # with two classes exchanged no calibration fits: its temperature is endless
    codebook = Codebook.of(LabeledLogits(logits, np.array(order)[labels]))
    content = np.vstack([codebook.coarse, *codebook.fine]).tobytes()
    print(hashlib.sha256(content + codebook.cells(logits).tobytes()).hexdigest())
"""

MACHINES = (
    {"OPENBLAS_NUM_THREADS": "1"},
    {"OPENBLAS_NUM_THREADS": "2"},
    {"OPENBLAS_CORETYPE": "Haswell"},
    {"OPENBLAS_CORETYPE": "Nehalem"},
)


@pytest.fixture(scope="module")
def learnt() -> list[str]:
    """What is learnt with each of these."""
    return [
        subprocess.run(
            [sys.executable, "-c", LEARN],
            env={**os.environ, **machine},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        ).stdout
        for machine in MACHINES
    ]


def test_the_same_on_every_processor_and_with_any_number_of_threads(learnt: list[str]) -> None:
    assert len(set(learnt)) == 1
