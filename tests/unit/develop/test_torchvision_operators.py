"""torchvision imports beside every build of torch; each case needs a fresh process."""

import subprocess
import sys
from pathlib import Path

import pytest

DECLARE = "from lifelong_core.develop.evaluation_transforms import declare_missing_operators as declare\n"

COMPLETE = """
import torch
library = torch.library.Library("torchvision", "DEF")
for name in ("nms", "qnms"):
    library.define(name + "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""
"""Gives torch the operators that a complete torchvision brings along."""

BROKEN = """
import torch
raise RuntimeError({message!r})
"""


def run(code: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    head = f"import sys\nsys.path.insert(0, {str(path)!r})\n" if path else ""
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, check=False)


def test_timm_is_importable_after_it_and_it_declares_what_is_missing_once() -> None:
    plain = run("import torchvision")
    is_complete = plain.returncode == 0
    assert is_complete or "operator torchvision::nms does not exist" in plain.stderr
    done = run(
        DECLARE
        + "print(declare())\nprint(declare())\nimport timm, torchvision\nprint(torchvision.__version__)"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{not is_complete}\nFalse\n0.")


def test_nothing_is_declared_where_the_operators_are_there() -> None:
    done = run(COMPLETE + DECLARE + "print(declare())\nimport timm")
    assert done.stdout.strip() == "False", done.stderr


def test_other_failures_of_torchvision_are_not_hidden(tmp_path: Path) -> None:
    message = "operator torchvision::roi_align"
    (tmp_path / "torchvision.py").write_text(BROKEN.format(message=message))
    done = run(DECLARE + "declare()", tmp_path)
    assert done.returncode != 0
    assert f"RuntimeError: {message}" in done.stderr


@pytest.mark.parametrize("module", ["augmentation.transform", "optimisation.classifier"])
def test_modules_of_a_training_are_importable_alone(module: str) -> None:
    done = run(f"import lifelong_core.develop.training.{module}")
    assert done.returncode == 0, done.stderr
