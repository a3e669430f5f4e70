"""Weights outside of a graph are put into it, from its own folder only; every other reference is refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.self_contained import self_contained
from tests.unit.service import onnx_graphs

GREY = Preprocessing.model_validate({"colour": "grey", "mean": [0.0], "standard_deviation": [1.0]})
LARGE = 10**9
DATA = "weights.data"


def outside(tensor: onnx.TensorProto, location: str = DATA, **entries: str) -> bytes:
    """Let a tensor refer to a file; returns what the file should hold."""
    content = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return content


def linear(location: str = DATA, **entries: str) -> tuple[bytes, bytes]:
    """The linear graph without its weights, and the weights."""
    model = onnx.load_from_string(onnx_graphs.linear())
    weights = outside(model.graph.initializer[0], location, **entries)
    return model.SerializeToString(), weights


def written(folder: Path, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "model.onnx").write_bytes(content)
    return folder / "model.onnx"


def test_a_graph_without_external_data_stays_as_it_is(tmp_path: Path) -> None:
    graph = written(tmp_path, onnx_graphs.linear())
    assert self_contained(graph, tmp_path, maximum_bytes=LARGE) == onnx_graphs.linear()


def test_weights_beside_the_graph_are_put_into_it(tmp_path: Path) -> None:
    content, weights = linear(offset="3", length=str(onnx_graphs.linear_weights().nbytes))
    (tmp_path / DATA).write_bytes(b"abc" + weights + b"more")
    whole = self_contained(written(tmp_path, content), tmp_path, maximum_bytes=LARGE)
    (tmp_path / DATA).unlink()
    image = np.random.default_rng(0).random((1, onnx_graphs.EDGE, onnx_graphs.EDGE)).astype(np.float32)
    logits = load_classifier(whole, GREY, classes=3).logits([image])
    np.testing.assert_allclose(logits, image.reshape(1, -1) @ onnx_graphs.linear_weights(), atol=1e-6)
    assert not [tensor for tensor in onnx.load_from_string(whole).graph.initializer if tensor.external_data]


def in_constant(model: onnx.ModelProto, tensor: onnx.TensorProto) -> None:
    model.graph.node.append(helper.make_node("Constant", [], ["extra"], value=tensor))


def in_sparse_constant(model: onnx.ModelProto, tensor: onnx.TensorProto) -> None:
    places = numpy_helper.from_array(np.arange(2), "places")
    sparse = helper.make_sparse_tensor(tensor, places, [2])
    model.graph.node.append(helper.make_node("Constant", [], ["extra"], sparse_value=sparse))


def in_sparse_initializer(model: onnx.ModelProto, tensor: onnx.TensorProto) -> None:
    places = numpy_helper.from_array(np.arange(2), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(tensor, places, [2]))


def in_subgraph(model: onnx.ModelProto, tensor: onnx.TensorProto) -> None:
    output = helper.make_tensor_value_info("inner", TensorProto.FLOAT, [2])
    branch = helper.make_graph([], "branch", [], [output], [tensor])
    model.graph.node.append(
        helper.make_node("If", ["condition"], ["extra"], then_branch=branch, else_branch=branch)
    )


def in_function(model: onnx.ModelProto, tensor: onnx.TensorProto) -> None:
    node = helper.make_node("Constant", [], ["y"], value=tensor)
    function = helper.make_function("own", "f", [], ["y"], [node], [helper.make_opsetid("", 18)])
    model.functions.append(function)


@pytest.mark.parametrize(
    "hide", [in_constant, in_sparse_constant, in_sparse_initializer, in_subgraph, in_function]
)
def test_external_data_is_found_wherever_it_hides(
    tmp_path: Path, hide: Callable[[onnx.ModelProto, onnx.TensorProto], None]
) -> None:
    model, tensor = (
        onnx.load_from_string(onnx_graphs.linear()),
        numpy_helper.from_array(np.ones(2, np.float32), "w"),
    )
    content = outside(tensor)
    hide(model, tensor)
    graph = written(tmp_path, model.SerializeToString())
    with pytest.raises(InvalidInputError, match="not there"):
        self_contained(graph, tmp_path, maximum_bytes=LARGE)
    (tmp_path / DATA).write_bytes(content)
    assert b"location" not in self_contained(graph, tmp_path, maximum_bytes=LARGE)


@pytest.mark.parametrize(
    ("location", "says"),
    [
        ("../secret", "in the folder of the graph"),
        ("inner/../../secret", "in the folder of the graph"),
        ("/etc/hostname", "in the folder of the graph"),
        ("..\\secret", "in the folder of the graph"),
        ("", "in the folder of the graph"),
        ("link", "a link to outside"),
        ("linked/secret", "a link to outside"),
        ("inner", "not there"),
        ("*/_ORT_MEM_ADDR_/*", "not there"),
    ],
)
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, location: str, says: str) -> None:
    content, weights = linear(location)
    (tmp_path / "secret").write_bytes(weights)
    graph = written(tmp_path / "model", content)
    (graph.parent / "inner").mkdir()
    (graph.parent / "link").symlink_to(tmp_path / "secret")
    (graph.parent / "linked").symlink_to(tmp_path)
    with pytest.raises(InvalidInputError, match=says) as refused:
        self_contained(graph, graph.parent, maximum_bytes=LARGE)
    assert refused.value.field == "external_data"
    assert "external_data=False" in (refused.value.hint or "")


def test_a_link_within_the_folder_is_followed(tmp_path: Path) -> None:
    content, weights = linear("link")
    (tmp_path / "real").write_bytes(weights)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert weights in self_contained(written(tmp_path, content), tmp_path, maximum_bytes=LARGE)


@pytest.mark.parametrize("entries", [{"offset": "-1"}, {"length": "x"}, {"offset": "9", "length": "9999"}])
def test_places_that_are_not_in_the_file_are_refused(tmp_path: Path, entries: dict[str, str]) -> None:
    content, weights = linear(**entries)
    (tmp_path / DATA).write_bytes(weights)
    with pytest.raises(InvalidInputError):
        self_contained(written(tmp_path, content), tmp_path, maximum_bytes=LARGE)


def test_without_a_folder_no_file_is_read(tmp_path: Path) -> None:
    content, weights = linear()
    (tmp_path / DATA).write_bytes(weights)
    with pytest.raises(InvalidInputError, match=DATA):
        self_contained(written(tmp_path, content), None, maximum_bytes=LARGE)


def test_graph_and_weights_together_have_a_limit(tmp_path: Path) -> None:
    content, weights = linear()
    (tmp_path / DATA).write_bytes(weights)
    graph, size = written(tmp_path, content), len(content) + len(weights)
    self_contained(graph, tmp_path, maximum_bytes=size)
    for limit in (size - 1, len(content) - 1):
        with pytest.raises(PayloadTooLargeError, match=f"at most {limit}"):
            self_contained(graph, tmp_path, maximum_bytes=limit)


@pytest.mark.parametrize("operator", ["Softmax", "Sigmoid"])
@pytest.mark.parametrize("after", [[], ["Identity", "Cast"]])
def test_a_graph_that_ends_in_an_activation_is_refused(
    tmp_path: Path, operator: str, after: list[str]
) -> None:
    model = onnx.load_from_string(onnx_graphs.linear())
    model.graph.node[-1].output[0] = name = "scores"
    for number, one in enumerate([operator, *after]):
        attributes = {"to": TensorProto.FLOAT} if one == "Cast" else {}
        model.graph.node.append(helper.make_node(one, [name], [f"n{number}"], **attributes))
        name = f"n{number}"
    model.graph.node[-1].output[0] = "logits"
    with pytest.raises(InvalidInputError, match=f"ends in a {operator.lower()}"):
        self_contained(written(tmp_path, model.SerializeToString()), None, maximum_bytes=LARGE)


def test_what_is_no_onnx_file_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="not an ONNX file"):
        self_contained(written(tmp_path, b"not a graph"), tmp_path, maximum_bytes=LARGE)
