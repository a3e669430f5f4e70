"""Weights: loaded without executing anything, checked tensor by tensor, known by a digest."""

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from lifelong_core.develop.features.backbone import Backbone, limit_threads, load_backbone, weights_digest
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from tests.unit.develop.features.drawn import ARCHITECTURE


@pytest.fixture
def state(weights_file: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = torch.load(weights_file, weights_only=True)
    return found


def save(state: dict[str, Any], folder: Path) -> Path:
    file = folder / "w.pth"
    torch.save(state, file)
    return file


def test_formats_of_one_file_have_one_digest(
    backbone: Backbone, state: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    save_file(state, tmp_path / "w.safetensors")
    assert load_backbone(ARCHITECTURE, tmp_path / "w.safetensors", device="cpu").weights == backbone.weights
    nested = save({"state_dict": {f"module.{name}": tensor for name, tensor in state.items()}}, tmp_path)
    assert load_backbone(ARCHITECTURE, nested, device="cpu").weights == backbone.weights


def test_the_classifier_does_not_count(
    backbone: Backbone, state: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    classifier = [name for name in state if name.startswith("fc.")]
    assert classifier
    without = {name: tensor for name, tensor in state.items() if name not in classifier}
    assert load_backbone(ARCHITECTURE, save(without, tmp_path), device="cpu").weights == backbone.weights


def test_every_tensor_counts() -> None:
    state = {"a": torch.zeros(2), "b": torch.ones(1)}
    digests = {
        weights_digest(state),
        weights_digest({"a": torch.zeros(2)}),
        weights_digest(state | {"b": torch.zeros(1)}),
        weights_digest({"c": torch.zeros(2), "b": torch.ones(1)}),
        weights_digest({"a": torch.zeros(1, 2), "b": torch.ones(1)}),
        weights_digest({"a": torch.zeros(2, dtype=torch.int32), "b": torch.ones(1)}),
    }
    assert len(digests) == 6
    assert weights_digest(dict(reversed(state.items()))) == weights_digest(state)


@pytest.mark.parametrize("change", ["missing", "further", "shape"])
def test_weights_of_another_model_are_refused(
    state: dict[str, torch.Tensor], tmp_path: Path, change: str
) -> None:
    name = next(iter(state))
    changed = {
        "missing": {key: tensor for key, tensor in state.items() if key != name},
        "further": state | {"other.weight": torch.zeros(1)},
        "shape": state | {name: torch.zeros(1)},
    }[change]
    with pytest.raises(InvalidInputError, match=name if change != "further" else "other"):
        load_backbone(ARCHITECTURE, save(changed, tmp_path))


def test_a_pickle_is_not_executed(tmp_path: Path) -> None:
    class Attack:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "executed"),)

    (tmp_path / "w.pth").write_bytes(pickle.dumps({"a": Attack()}))
    with pytest.raises(InvalidInputError, match="loaded safely"):
        load_backbone(ARCHITECTURE, tmp_path / "w.pth")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("content", [b"", b"text", pickle.dumps([1])], ids=["empty", "text", "list"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "w.pth").write_bytes(content)
    with pytest.raises(InvalidInputError, match="weights"):
        load_backbone(ARCHITECTURE, tmp_path / "w.pth")


def test_unknown_models_and_devices_are_refused(weights_file: Path) -> None:
    with pytest.raises(InvalidInputError, match="resnet34"):
        load_backbone("resnet340", weights_file)
    with pytest.raises(InvalidInputError, match="device"):
        load_backbone(ARCHITECTURE, weights_file, device="cuda:99")
    with pytest.raises(InvalidInputError, match="pretrained"):
        load_backbone(ARCHITECTURE)


def test_without_the_hub_a_file_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ConfigurationError, match="file of the weights"):
        load_backbone(ARCHITECTURE, pretrained=True)


def test_features_do_not_depend_on_the_batch(backbone: Backbone) -> None:
    images = np.random.default_rng(0).normal(size=(5, 3, 32, 32)).astype(np.float32)
    together = backbone.extract(images)
    assert together.shape == (5, backbone.features)
    for row, image in zip(together, images, strict=True):
        assert backbone.extract(image[None])[0] == pytest.approx(row, abs=1e-5)


def test_threads_are_limited_for_a_while() -> None:
    before = torch.get_num_threads()
    with limit_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
    with limit_threads(None):
        assert torch.get_num_threads() <= usable_cores()
