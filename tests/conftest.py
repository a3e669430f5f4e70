"""Fixtures that several tiers share."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# Small matrices, and processes that share the cores: more threads of BLAS only wait for each other, ten times as long
# on two cores. It has to be said before numpy is imported; the processes that tests start inherit it.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np
import pytest
from hypothesis import settings

from lifelong_core.deploy import LabeledLogits

# The same examples in every run, and no deadlines: how long an example takes depends on what else the machine does.
settings.register_profile("lifelong", deadline=None, derandomize=True)
settings.load_profile("lifelong")

REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class SharedTask:
    """Logits of a real classifier on held-back and on deployment samples."""

    calibration: LabeledLogits
    deployment: LabeledLogits


@pytest.fixture(scope="session")
def shared_logits() -> Callable[[str], SharedTask]:
    """Loads one of the tasks in the folder that LIFELONG_SHARED_DATA names, else from ../shared/data."""
    folder = Path(os.environ.get("LIFELONG_SHARED_DATA") or REPOSITORY.parent / "shared" / "data") / "logits"
    if not folder.is_dir():
        pytest.skip(
            f"the real logits are not in {folder}; set LIFELONG_SHARED_DATA to the folder that holds them"
        )
    loaded: dict[str, SharedTask] = {}

    def load(name: str) -> SharedTask:
        if name not in loaded:
            with np.load(folder / f"{name}.npz") as arrays:
                loaded[name] = SharedTask(
                    *(
                        LabeledLogits(arrays[f"{split}_logits"], arrays[f"{split}_labels"])
                        for split in ("calibration", "deployment")
                    )
                )
        return loaded[name]

    return load
