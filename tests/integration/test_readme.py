"""The README's steps to an own model: its blocks are executed in a fresh folder."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lifelong_core.deploy import PostProcessingHead
from lifelong_core.values.preprocessing import Preprocessing
from tests import tools
from tests.integration.processes import running_service

REPOSITORY = Path(__file__).resolve().parents[2]
README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
CLASSES = ("benign", "malignant")
LOGITS_TOLERANCE = 1e-3
"""ONNX Runtime and torch round differently in 34 layers; an image in another size or order changes far more."""

COMPARE_WITH_TORCH = """
import onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
for count in (1, 2, 5):
    images = torch.rand(count, 3, 224, 224)
    (logits,) = session.run(None, {"image": images.numpy()})
    torch.testing.assert_close(torch.from_numpy(logits), model(images).detach(), rtol=1e-3, atol=1e-3)
"""

FIT_WEIGHTS = """
from pathlib import Path

import numpy as np
import timm
import torch
from PIL import Image
from timm.data import create_transform, resolve_data_config

torch.manual_seed(0)
model = timm.create_model("resnet34", num_classes=2).eval()
transform = create_transform(**resolve_data_config(model=model), is_training=False)
files = sorted(Path("training").glob("*/*.png"))
labels = torch.tensor([file.parent.name == "malignant" for file in files])
with torch.no_grad():
    inputs = torch.stack([transform(Image.open(file)) for file in files])
    features = model.forward_head(model.forward_features(inputs), pre_logits=True)
    centre, scale = features.mean(0), features.std()
    solution = torch.linalg.lstsq((features - centre) / scale, 2.0 * labels[:, None] - 1, driver="gelsd", rcond=0.05)
    weights = solution.solution[:, 0] / scale
    model.fc.weight.copy_(torch.stack([-weights, weights]))
    model.fc.bias.copy_(torch.stack([weights @ centre, -weights @ centre]))
    torch.save(model.state_dict(), "weights.pt")
    np.save("expected_logits.npy", model(transform(Image.open("image.png"))[None]).numpy())
"""


def block(language: str, holds: str) -> str:
    """The one code block of the README in a language that holds a text."""
    found = [
        text
        for text in re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
        if holds in text
    ]
    assert len(found) == 1, f"{len(found)} blocks hold {holds!r}"
    return found[0]


EXPORT = block("python", "torch.onnx.export")
Execute = Callable[..., str]


@pytest.fixture
def execute(tmp_path: Path) -> Execute:
    """Runs a command in a fresh folder, with the variables that are given, and gives its standard output."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("LIFELONG_")}
    inherited["PATH"] = f"{Path(sys.executable).parent}:{inherited['PATH']}"

    def execute(*command: str, **variables: str) -> str:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=inherited | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return execute


def photograph(rng: np.random.Generator, label: int) -> Image.Image:
    """A noisy image; malignant ones are brighter on average, and some are not."""
    level = rng.normal((100, 150)[label], 20)
    pixels = rng.normal(level, 30, size=(60, 80, 3))
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8))


def save_photographs(folder: Path, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for label, name in enumerate(CLASSES):
        (folder / name).mkdir(parents=True)
        for index in range(count):
            photograph(rng, label).save(folder / name / f"{index}.png")


def test_from_own_weights_to_a_prediction(execute: Execute, tmp_path: Path) -> None:
    tools.program(tools.CURL)
    save_photographs(tmp_path / "training", 20, seed=0)
    save_photographs(tmp_path / "held_out", 60, seed=1)
    photograph(np.random.default_rng(2), label=1).save(tmp_path / "image.png")
    declare = EXPORT[: EXPORT.index("import timm")]
    execute(sys.executable, "-c", declare + FIT_WEIGHTS)
    with_weights = EXPORT.replace("# model.load_state_dict(", "model.load_state_dict(")
    assert with_weights != EXPORT
    (tmp_path / "export_model.py").write_text(with_weights + COMPARE_WITH_TORCH)

    token = execute("bash", "-ec", block("sh", "export_model.py")).split("ll_")[1].split()[0]
    assert [file.name for file in tmp_path.glob("model.*")] == ["model.onnx"]
    setup = {"LIFELONG_DATA_DIRECTORY": str(tmp_path / "lifelong-data"), "LIFELONG_TOKEN": f"ll_{token}"}
    serve = block("sh", "lifelong serve").split()
    with running_service(
        tmp_path, setup["LIFELONG_TOKEN"], command=serve, data_directory=tmp_path / "lifelong-data"
    ) as service:
        service.wait_for_workers()
        predict = block("sh", "lifelong calibrate").replace("export LIFELONG_TOKEN=...", "")
        predict = predict.replace("127.0.0.1:3000", f"127.0.0.1:{service.port}")
        answer = json.loads(
            execute("bash", "-ec", predict, LIFELONG_PORT=str(service.port), **setup).splitlines()[-1]
        )

    head = PostProcessingHead.from_json(execute("lifelong", "heads", "show", "resnet", "1"))
    logits = np.load(tmp_path / "expected_logits.npy")
    expected = head.apply(logits.astype(np.float32))
    assert answer.keys() == json.loads(block("json", "prediction_id")).keys()
    assert answer["label"] == CLASSES[int(expected.decisions[0])]
    np.testing.assert_allclose(
        list(answer["probabilities"].values()), expected.probabilities[0], atol=LOGITS_TOLERANCE
    )


def test_the_documented_preprocessing_is_accepted() -> None:
    page = (REPOSITORY / "docs" / "preprocessing.md").read_text(encoding="utf-8")
    documents = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(documents) == 6
    for document in documents:
        Preprocessing.model_validate_json(document)
    mentioned = set(re.findall(r"`([a-z_]+)(?:\.[a-z_]+)?`", page))
    assert mentioned >= set(Preprocessing.model_fields)
