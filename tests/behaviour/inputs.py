"""What the recording sends and reads: images, graphs, labelled logits and documents, the same in every run."""

import base64
import json
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from tests.unit.service import onnx_graphs

CLASSES = ["benign", "unclear", "malignant"]
COSTS = [[0, 1, 1, 0.5], [1, 0, 1, 0.5], [5, 5, 0, 0.5]]
OTHER_COSTS = [[0, 1, 1, 0.5], [1, 0, 1, 0.5], [9, 9, 0, 0.5]]
GREY = {"colour": "grey", "mean": [0.5], "standard_deviation": [0.5]}
BALANCED = (1 / 3, 1 / 3, 1 / 3)
SHIFTED = (0.85, 0.1, 0.05)
ANSWERS: dict[str, Any] = {
    "class_scores_available": True,
    "decision_rule": "argmax",
    "unequal_severity": True,
    "costs_available": True,
    "costs": OTHER_COSTS,
    "prevalences_representative": False,
    "target_prevalences_known": True,
    "target_prevalences": [0.7, 0.2, 0.1],
    "unequal_interest": False,
    "calibration_assessment": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
"""Answers of an interview on the task skin; EC, TPR and AUROC are recommended."""
OPEN_CHOICE: dict[str, Any] = {
    "number_of_classes": 3,
    "class_scores_available": False,
    "unequal_severity": True,
    "costs_available": True,
    "costs": [[0, 1, 1], [2, 0, 2], [3, 3, 0]],
    "unequal_interest": False,
    "prevalences_representative": True,
    "predictive_values": "unclear",
    "class_imbalance": False,
    "dependent_cases": False,
    "invalid_outputs": False,
}
"""Answers that leave the choice DG3.4 open."""
PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
"""The first one of the test vectors in RFC 8032."""
TIMM = {
    "input_size": [3, 224, 224],
    "interpolation": "bicubic",
    "mean": [0.485, 0.456, 0.406],
    "std": [0.229, 0.224, 0.225],
    "crop_pct": 0.875,
    "crop_mode": "center",
}
KEYS = {
    "group.key": "5" * 64 + "\n",
    "signing.key": "-----BEGIN PRIVATE KEY-----\n"
    + base64.b64encode(bytes.fromhex("302e020100300506032b657004220420" + "5a" * 32)).decode()
    + "\n-----END PRIVATE KEY-----\n",
}
"""Key files of the data directory, always the same, so that hashes of groups are, too."""
RECIPE = {"architecture": "resnet10t", "initial_weights": "random", "image_size": 32}


def draw(prevalence: tuple[float, ...], samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits (float32) and labels with these class shares, shuffled; about 80 % are right when balanced."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), np.round(np.array(prevalence) * samples).astype(int))
    rng.shuffle(labels)
    logits = 2.5 * np.eye(3)[labels] + rng.normal(scale=1.25, size=(labels.size, 3))
    return logits.astype(np.float32), labels


def image(shade: int = 128, edge: int = onnx_graphs.EDGE) -> bytes:
    """A grey PNG."""
    file = BytesIO()
    Image.fromarray(np.full((edge, edge), shade, dtype=np.uint8)).save(file, "PNG")
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    """The arrays as an NPZ file."""
    file = BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def labelled(seed: int = 5, samples: int = 180) -> dict[str, Any]:
    """A labelled set with groups and metadata, as arrays."""
    logits, labels = draw(BALANCED, samples, seed)
    return {
        "logits": logits,
        "labels": labels,
        "groups": np.array([f"patient {row // 2}" for row in range(samples)]),
        "metadata_scanner": np.array(["A", "B"] * (samples // 2)),
    }


def paired(seed: int = 5) -> dict[str, Any]:
    """A labelled set with the logits of two models."""
    arrays = labelled(seed)
    noise = np.random.default_rng(3).normal(size=arrays["logits"].shape).astype(np.float32)
    names = np.array([f"{row}.png" for row in range(len(noise))])
    return arrays | {"current_logits": arrays["logits"] + noise, "names": names}


def archive() -> bytes:
    """A ZIP file with one image in the folder of its class."""
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as zipped:
        for name in CLASSES:
            zipped.writestr(zipfile.ZipInfo(f"{name}/1.png"), image())
    return file.getvalue()


def entry(name: str, **more: Any) -> dict[str, Any]:
    """A document of the knowledge base."""
    card = {"name": name, "classes": 3, "samples": 500, "keywords": ["skin"], "modality": "dermatoscopy"}
    trainings = [{"performance": {"BA": [0.7, 0.72, 0.71]}, "architecture": "convnext_tiny"}]
    return {"card": card, "trainings": trainings, "licence": "CC0-1.0", "contact": "a@clinic.example"} | more


def write_files(folder: Path) -> None:
    """Write the files that commands read: sets of logits, maps, images, answers and labels."""
    rng = np.random.default_rng(0)
    for name, seed in (("calibration", 1), ("good", 5), ("poor", 6), ("remote", 2)):
        np.savez(folder / f"{name}.npz", **labelled(seed, 360))
    np.savez(folder / "pairs.npz", **paired())
    np.save(folder / "same.npy", draw(BALANCED, 600, 11)[0])
    np.save(folder / "shifted.npy", draw(SHIFTED, 600, 12)[0])
    truth = rng.random((6, 4, 4))
    for name in ("a", "b"):
        np.save(folder / f"maps-{name}.npy", np.clip(truth + rng.normal(0, 0.2, truth.shape), 0, 1))
    for name, count in (("segmented", 12), ("maps", 10)):
        (folder / name).mkdir()
        for case in range(count):
            labels = rng.integers(0, 3, (8, 8))
            scores = np.exp(2 * np.eye(3)[labels].transpose(2, 0, 1) + rng.normal(size=(3, 8, 8)))
            probabilities = (scores / scores.sum(axis=0)).astype(np.float32)
            np.savez(
                folder / name / f"{case:02}.npz", probabilities=probabilities, labels=labels.astype(np.uint8)
            )
    for index in range(18):
        file = folder / "images" / CLASSES[index % 3] / f"{index}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(image(10 * index + 20, 32))
    (folder / "timm.json").write_text(json.dumps(TIMM))
    (folder / "model.onnx").write_bytes(onnx_graphs.linear())
