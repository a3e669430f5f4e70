"""`lifelong models preprocessing` as a user types it."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lifelong_core.develop.evaluation_transforms import describe_hugging_face_processor
from lifelong_core.values.errors import LifelongError
from lifelong_core.values.preprocessing import Preprocessing

Run = Callable[..., str]
COMMAND = ("models", "preprocessing")


def test_document_of_a_timm_model(installed: Run) -> None:
    document = json.loads(installed(*COMMAND, "timm/resnet34"))
    assert document == {
        "colour": "rgb",
        "resize": {"mode": "shortest_edge", "height": 235, "width": 235, "interpolation": "bicubic"},
        "centre_crop": {"height": 224, "width": 224},
        "mean": [0.485, 0.456, 0.406],
        "standard_deviation": [0.229, 0.224, 0.225],
        "layout": "NCHW",
    }


def test_written_to_a_file_it_reads_back(installed: Run, tmp_path: Path) -> None:
    file = tmp_path / "preprocessing.json"
    printed = installed(*COMMAND, "torchvision/resnet34")
    assert installed(*COMMAND, "torchvision/resnet34", "--output", str(file)) == ""
    assert file.read_text() == printed
    assert Preprocessing.model_validate_json(printed).resize.height == 256


def test_size_of_the_input(installed: Run) -> None:
    assert json.loads(installed(*COMMAND, "timm/resnet34", "--size", "512"))["centre_crop"]["height"] == 512
    assert json.loads(installed(*COMMAND, "timm/resnet34", "--test-size"))["centre_crop"]["height"] == 288


def test_size_is_for_timm_alone(installed: Run) -> None:
    for option in (("--size", "512"), ("--test-size",)):
        with pytest.raises(LifelongError, match="only timm/NAME") as caught:
            installed(*COMMAND, "torchvision/resnet34", *option)
        assert caught.value.field == option[0]


def test_document_of_a_data_config(installed: Run, tmp_path: Path) -> None:
    file = tmp_path / "data_config.json"
    file.write_text(json.dumps({"input_size": [3, 96, 96], "crop_mode": "squash", "crop_pct": 1.0}))
    document = json.loads(installed(*COMMAND, str(file)))
    assert document["resize"]["mode"] == "exact"
    assert "centre_crop" not in document


def test_a_file_that_is_no_data_config(installed: Run, tmp_path: Path) -> None:
    file = tmp_path / "data_config.json"
    for content, message in (
        ("{", "not JSON"),
        ("[1]", "no JSON object"),
        ('{"crop_mod": "squash"}', "crop_mod: .*Did you mean crop_mode"),
        ('{"crop_pct": "high"}', "crop_pct: expected a number"),
        ('{"crop_mode": "border"}', "crop_mode: .*pads the image"),
    ):
        file.write_text(content)
        with pytest.raises(LifelongError) as caught:
            installed(*COMMAND, str(file))
        assert re.search(message, str(caught.value))


def test_a_source_that_is_nothing(installed: Run) -> None:
    for source in ("resnet34", "timm", "timm/", "keras/resnet50"):
        with pytest.raises(LifelongError, match="there is no file") as caught:
            installed(*COMMAND, source)
        assert "timm/NAME" in str(caught.value.hint)


@pytest.mark.parametrize("library", ["timm", "torchvision"])
def test_without_the_extra_it_says_what_to_install(
    installed: Run, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # an import of it fails
    with pytest.raises(LifelongError, match=f"{library} is not installed") as caught:
        installed(*COMMAND, f"{library}/resnet34")
    assert ".[develop]" in str(caught.value.hint)


def test_a_model_is_either_a_graph_or_external(installed: Run, tmp_path: Path) -> None:
    (tmp_path / "some.file").touch()
    for arguments, field, message in (
        ((), "--onnx", "a model needs its graph"),
        (("--external", "--onnx", "some.file"), "--onnx", "an external model"),
        (("--external", "--preprocessing", "some.file"), "--preprocessing", "an external model"),
    ):
        with pytest.raises(LifelongError, match=message) as caught:
            installed("models", "add", "net", "--task", "lesions", *arguments)
        assert caught.value.field == field
        assert "--external" in str(caught.value.hint)


HUGGING_FACE = {
    "do_resize": True,
    "size": {"shortest_edge": 256},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 224, "width": 224},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_std": [0.25, 0.25, 0.25],
    "image_processor_type": "CLIPImageProcessor",
}


def test_a_processor_of_hugging_face() -> None:
    assert describe_hugging_face_processor(HUGGING_FACE) == {
        "resize": {"mode": "shortest_edge", "height": 256, "width": 256, "interpolation": "bicubic"},
        "centre_crop": {"height": 224, "width": 224},
        "mean": [0.5, 0.5, 0.5],
        "standard_deviation": [0.25, 0.25, 0.25],
    }


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("crop_pct", 0.9),
        ("do_pad", True),
        ("resample", 4),
        ("size", 224),
        ("size", {"shortest_edge": 224, "longest_edge": 300}),
        ("crop_size", 224),
        ("do_center_crop", None),
        ("do_rescale", False),
        ("rescale_factor", 1 / 127.5),
        ("image_mean", None),
    ],
)
def test_what_preprocessing_lacks_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(LifelongError) as refused:
        describe_hugging_face_processor(HUGGING_FACE | {field: value})
    assert refused.value.field == field
