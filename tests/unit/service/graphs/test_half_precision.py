"""Graphs are converted to half precision before they are stored; the change of the logits is measured."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.half_precision import largest_difference, to_half_precision
from lifelong_service.graphs.loader import load_classifier
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import Service
from tests.unit.service.graphs.gpu_double import images
from tests.unit.service.routes.test_operations import error_of

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})


def test_a_converted_graph_has_half_of_the_bytes_and_nearly_the_same_logits() -> None:
    graph = onnx_graphs.slow(repetitions=1)
    converted = to_half_precision(graph)
    assert len(converted) < 0.51 * len(graph)
    before, after = (load_classifier(one, GREY, classes=3) for one in (graph, converted))
    some = images(4)
    expected, found = before.logits(some), after.logits(some)
    assert not np.array_equal(found, expected)
    np.testing.assert_allclose(found, expected, rtol=0.01, atol=1e-3)


def test_the_difference_is_that_of_rounded_weights() -> None:
    """Weights of a third are rounded to 10 bits, pixels and sums too."""
    model = onnx.load_from_string(onnx_graphs.scaled(1 / 3))
    graph = model.SerializeToString()
    before, after = (load_classifier(one, GREY, classes=3) for one in (graph, to_half_precision(graph)))
    difference = largest_difference(before, after, GREY)
    assert 0 < difference < 16 * 0.375 / 3 * 3 * 2**-11
    assert largest_difference(before, before, GREY) == 0


def test_the_compared_images_have_the_layout_of_the_graph() -> None:
    three = Preprocessing.model_validate({"mean": [0.5, 0.5, 0.5], "standard_deviation": [0.25, 0.5, 1]})
    graph = onnx_graphs.linear(channels=3)
    before = load_classifier(graph, three, classes=3)
    after = load_classifier(to_half_precision(graph), three, classes=3)
    assert largest_difference(before, after, three) < 0.05


def test_input_and_output_stay_float32() -> None:
    model = onnx.load_from_string(to_half_precision(onnx_graphs.linear()))
    kinds = {one.type.tensor_type.elem_type for one in (*model.graph.input, *model.graph.output)}
    assert kinds == {TensorProto.FLOAT}
    assert {tensor.data_type for tensor in model.graph.initializer} == {TensorProto.FLOAT16}


def test_a_graph_without_float32_weights_is_refused() -> None:
    half = to_half_precision(onnx_graphs.linear())
    with pytest.raises(InvalidInputError, match="no float32 weights") as error:
        to_half_precision(half)
    assert error.value.field == "precision"


def test_logits_that_are_not_finite_are_no_small_difference() -> None:
    """As where values exceed the largest number of half precision: here square roots of images that are darker."""
    centred = GREY.model_copy(update={"mean": (0.5,)})
    before = load_classifier(onnx_graphs.linear(), centred, classes=3)
    after = load_classifier(onnx_graphs.square_root(), centred, classes=3)
    with pytest.raises(InvalidInputError, match="NaN or infinity") as error:
        largest_difference(before, after, centred)
    assert error.value.field == "precision"


def test_a_model_added_over_http_in_half_precision_is_stored_converted(service: Service) -> None:
    document = {"task": "skin", "name": "halved", "preprocessing": GREY.model_dump(mode="json")}
    half = {"document": json.dumps(document | {"precision": "half"})}
    graph = onnx_graphs.scaled(1 / 3)
    added = service.client.post("/v1/admin/models", data=half, files={"onnx": graph})
    assert added.status_code == 201, added.text
    artifact = service.store.models.get("halved").artifact
    assert artifact is not None
    assert service.store.artifacts.path(artifact).read_bytes() == to_half_precision(graph)
    for wrong in ({"precision": "half"}, {"precision": "double"}, {"precision": "half", "kind": "external"}):
        refused = service.client.post("/v1/admin/models", json=document | wrong)
        assert (refused.status_code, error_of(refused)["field"]) == (422, "precision")
