"""Graphs are checked when they are loaded, and compute their formula."""

import numpy as np
import pytest
from onnx import TensorProto

from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.loader import load_classifier
from tests.unit.service import onnx_graphs

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})
IMAGES = np.random.default_rng(0).random((5, 1, onnx_graphs.EDGE, onnx_graphs.EDGE)).astype(np.float32)


@pytest.mark.parametrize("batch", ["N", 1, 2, 8])
def test_logits_whatever_batch_size_the_graph_is_frozen_to(batch: int | str) -> None:
    classifier = load_classifier(onnx_graphs.linear(batch=batch), GREY, classes=3)
    expected = IMAGES.reshape(5, -1) @ onnx_graphs.linear_weights()
    logits = classifier.logits(list(IMAGES))
    assert logits.dtype == np.float32
    np.testing.assert_allclose(logits, expected, atol=1e-6)


def test_half_precision_input() -> None:
    classifier = load_classifier(onnx_graphs.linear(element=TensorProto.FLOAT16), GREY, classes=3)
    np.testing.assert_allclose(
        classifier.logits(list(IMAGES)), IMAGES.reshape(5, -1) @ onnx_graphs.linear_weights(), atol=0.02
    )


@pytest.mark.parametrize("rank", [1, 2])
def test_one_logit_is_that_of_class_1_of_two(rank: int) -> None:
    logits = load_classifier(onnx_graphs.one_logit(rank=rank), GREY, classes=2).logits(list(IMAGES))
    expected = np.stack([np.zeros(5), IMAGES.mean(axis=(1, 2, 3)) - 0.5], axis=1)
    np.testing.assert_allclose(logits, expected, atol=1e-6)


def test_a_graph_of_bytes_gets_every_grey_value_as_it_is() -> None:
    values = np.arange(256, dtype=np.uint8).reshape(16, 1, 4, 4)
    classifier = load_classifier(onnx_graphs.linear(element=TensorProto.UINT8), GREY, classes=3)
    logits = classifier.logits(list(values.astype(np.float32) / np.float32(255)))
    assert np.array_equal(logits, values.reshape(16, -1).astype(np.float32) @ onnx_graphs.linear_weights())


def test_a_graph_of_bytes_allows_no_normalisation() -> None:
    normalised = GREY.model_copy(update={"mean": (0.5,)})
    with pytest.raises(InvalidInputError, match="uint8") as refused:
        load_classifier(onnx_graphs.linear(element=TensorProto.UINT8), normalised, classes=3)
    assert refused.value.field == "preprocessing"


@pytest.mark.parametrize(
    ("graph", "classes", "says"),
    [
        (b"not a graph", 3, "cannot load"),
        (onnx_graphs.flat_input(), 3, "rank 2"),
        (onnx_graphs.two_outputs(), 3, r"2 output\(s\)"),
        (onnx_graphs.linear(classes=4), 3, "expected .*3"),
        (onnx_graphs.linear(channels=3), 3, "channel"),
        (onnx_graphs.linear(element=TensorProto.INT32), 3, "int32"),
        (onnx_graphs.one_logit(), 3, "one logit per class"),
    ],
    ids=["garbage", "rank", "outputs", "classes", "channels", "type", "one logit"],
)
def test_graphs_that_do_not_fit_are_refused(graph: bytes, classes: int, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says) as caught:
        load_classifier(graph, GREY, classes=classes)
    assert caught.value.hint


def test_preprocessing_that_does_not_fit_the_graph_is_refused() -> None:
    other = GREY.model_copy(
        update={"resize": Preprocessing.model_validate({"resize": {"height": 9, "width": 9}}).resize}
    )
    with pytest.raises(InvalidInputError, match="fails on an input"):
        load_classifier(onnx_graphs.linear(), other, classes=3)


def test_a_failing_run_names_the_image() -> None:
    classifier = load_classifier(onnx_graphs.fails_on_white(), GREY, classes=3)
    with pytest.raises(InvalidInputError) as caught:
        classifier.logits([np.ones((1, onnx_graphs.EDGE, onnx_graphs.EDGE), np.float32)])
    assert caught.value.field == "image"


def test_a_graph_that_mixes_the_images_of_a_batch_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="mixes the images") as caught:
        load_classifier(onnx_graphs.batch_statistics(), GREY, classes=3)
    assert caught.value.field == "onnx"
    assert "evaluation mode" in (caught.value.hint or "")


def test_a_graph_that_ends_in_softmax_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="probabilities") as caught:
        load_classifier(onnx_graphs.softmax(), GREY, classes=3)
    assert "softmax" in (caught.value.hint or "")


def test_logits_that_sum_to_one_for_a_single_image_are_logits() -> None:
    classifier = load_classifier(onnx_graphs.sums_to_one_for_grey(), GREY, classes=3)
    grey = np.full((1, onnx_graphs.EDGE, onnx_graphs.EDGE), 0.5, np.float32)
    np.testing.assert_allclose(classifier.logits([grey]), [[0, 0, 1]], atol=1e-6)
