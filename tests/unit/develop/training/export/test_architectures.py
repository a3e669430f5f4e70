"""Preprocessing and graphs of timm's architectures."""

import pytest

from benchmarks.onnx_parity import ARCHITECTURES, measure
from lifelong_core.develop.training.export.exported_model import training_preprocessing
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import CentreCrop, Resize


def test_the_preprocessing_is_that_of_the_architecture():
    found = training_preprocessing(Recipe(architecture="resnet34"))
    assert found.resize == Resize(mode="shortest_edge", height=235, width=235, interpolation="bicubic")
    assert found.centre_crop == CentreCrop(height=224, width=224)
    assert (found.colour, found.mean) == ("rgb", (0.485, 0.456, 0.406))


def test_a_recipe_may_name_another_size():
    found = training_preprocessing(Recipe(architecture="resnet34", image_size=32))
    assert found.resize == Resize(mode="shortest_edge", height=33, width=33, interpolation="bicubic")
    assert found.centre_crop == CentreCrop(height=32, width=32)


def test_grey_images_are_normalised_by_the_average_of_the_colours():
    found = training_preprocessing(Recipe(architecture="resnet34", colour="grey", image_size=32))
    assert (found.colour, found.channels) == ("grey", 1)
    assert found.mean == (pytest.approx((0.485 + 0.456 + 0.406) / 3),)
    assert found.standard_deviation == (pytest.approx((0.229 + 0.224 + 0.225) / 3),)


def test_an_unknown_architecture_is_refused_with_a_suggestion():
    with pytest.raises(InvalidInputError, match="resnet34"):
        training_preprocessing(Recipe(architecture="resnet_34"))


def test_the_graph_of_a_timm_model_gives_the_logits_of_torch():
    """A residual network is trained and compared in `test_run`; the benchmark compares more of them."""
    architecture = "mobilenetv3_small_050"
    row = measure(architecture, **ARCHITECTURES[architecture])
    assert row["outcome"] == "right"
    assert 0 < row["largest_difference"] < row["tolerance"]
    assert 0 < row["largest_difference_through_service"] < row["tolerance"]
