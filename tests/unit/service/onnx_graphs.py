"""Small ONNX graphs whose outputs can be worked out by hand."""

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CLASSES = 3
EDGE = 4
"""Edge of the input images in pixels."""


def linear_weights(classes: int = CLASSES, channels: int = 1) -> np.ndarray:
    """Different for every pixel and class; exact in float32."""
    pixels = channels * EDGE * EDGE
    return ((np.arange(pixels * classes) % 7 - 3) / 8).reshape(pixels, classes).astype(np.float32)


def linear(
    *, classes: int = CLASSES, channels: int = 1, batch: int | str = "N", element: int = TensorProto.FLOAT
) -> bytes:
    """logits = flattened pixels @ linear_weights."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("Cast", ["pixels"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["floats", "weights"], ["logits"]),
    ]
    return _graph(
        nodes,
        [linear_weights(classes, channels)],
        ["weights"],
        [batch, channels, EDGE, EDGE],
        element=element,
        classes=classes,
    )


def scaled(factor: float) -> bytes:
    """The linear logits times a factor: tells which of several versions gave them."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("MatMul", ["pixels", "weights"], ["logits"]),
    ]
    weights = linear_weights() * np.float32(factor)
    return _graph(nodes, [weights], ["weights"], ["N", 1, EDGE, EDGE])


def one_logit(*, rank: int = 2, element: int = TensorProto.FLOAT) -> bytes:
    """The mean grey value minus a half, as (N, 1) or (N,): the logit of the positive one of two classes."""
    nodes = [
        helper.make_node("Cast", ["image"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Flatten", ["floats"], ["pixels"]),
        helper.make_node("ReduceMean", ["pixels", "axis"], ["mean"], keepdims=rank - 1),
        helper.make_node("Sub", ["mean", "half"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("image", element, ["N", 1, EDGE, EDGE])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 1][:rank])],
        [
            numpy_helper.from_array(np.array([1]), "axis"),
            numpy_helper.from_array(
                np.array(127.5 if element == TensorProto.UINT8 else 0.5, np.float32), "half"
            ),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def square_root() -> bytes:
    """NaN in every logit of an image whose pixels sum up to less than zero."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("MatMul", ["pixels", "weights"], ["sums"]),
        helper.make_node("Sqrt", ["sums"], ["logits"]),
    ]
    return _graph(nodes, [np.ones((EDGE * EDGE, CLASSES), np.float32)], ["weights"], ["N", 1, EDGE, EDGE])


def fails_on_white() -> bytes:
    """Looks the logits up in a table by brightness; the row of a purely white image is missing, so the graph fails."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("ReduceMax", ["pixels", "axis"], ["brightest"], keepdims=0),
        helper.make_node("Cast", ["brightest"], ["row"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "row"], ["logits"]),
    ]
    table = np.arange(CLASSES, dtype=np.float32).reshape(1, CLASSES)
    return _graph(nodes, [table, np.array([1])], ["table", "axis"], ["N", 1, EDGE, EDGE])


def batch_statistics() -> bytes:
    """Logits minus their mean over the batch, as batch normalisation in training mode makes them."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("MatMul", ["pixels", "weights"], ["sums"]),
        helper.make_node("ReduceMean", ["sums", "axis"], ["mean"], keepdims=1),
        helper.make_node("Sub", ["sums", "mean"], ["logits"]),
    ]
    return _graph(nodes, [linear_weights(), np.array([0])], ["weights", "axis"], ["N", 1, EDGE, EDGE])


def softmax() -> bytes:
    """Probabilities instead of logits."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("MatMul", ["pixels", "weights"], ["sums"]),
        helper.make_node("Softmax", ["sums"], ["logits"], axis=1),
    ]
    return _graph(nodes, [linear_weights()], ["weights"], ["N", 1, EDGE, EDGE])


def sums_to_one_for_grey() -> bytes:
    """The mean brightness minus a half, plus (0, 0, 1): an honest graph whose logits for plain grey sum up to one."""
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("MatMul", ["pixels", "weights"], ["brightness"]),
        helper.make_node("Add", ["brightness", "offset"], ["logits"]),
    ]
    weights = np.full((EDGE * EDGE, CLASSES), 1 / EDGE**2, np.float32)
    offset = np.array([-0.5, -0.5, 0.5], np.float32)
    return _graph(nodes, [weights, offset], ["weights", "offset"], ["N", 1, EDGE, EDGE])


def endless_on_white() -> bytes:
    """The linear logits; a `Loop` does not end for an image with a white pixel."""
    state = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Identity", ["before"], ["after"]),
        ],
        "body",
        [
            state("turn", TensorProto.INT64, []),
            state("go", TensorProto.BOOL, []),
            state("before", TensorProto.FLOAT, ["N", EDGE * EDGE]),
        ],
        [state("on", TensorProto.BOOL, []), state("after", TensorProto.FLOAT, ["N", EDGE * EDGE])],
    )
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("ReduceMax", ["image"], ["brightest"], keepdims=0),
        helper.make_node("GreaterOrEqual", ["brightest", "white"], ["is_white"]),
        helper.make_node("Loop", ["", "is_white", "pixels"], ["looped"], body=body),
        helper.make_node("MatMul", ["looped", "weights"], ["logits"]),
    ]
    return _graph(
        nodes, [linear_weights(), np.array(1, np.float32)], ["weights", "white"], ["N", 1, EDGE, EDGE]
    )


def slow(repetitions: int = 100, width: int = 20_000) -> bytes:
    """Logits of a long chain of sines: the time grows with the number of images, and some 20 ms go into each."""
    chain = [helper.make_node("Sin", [f"x{i}"], [f"x{i + 1}"]) for i in range(repetitions)]
    nodes = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("MatMul", ["pixels", "spread"], ["x0"]),
        *chain,
        helper.make_node("MatMul", [f"x{repetitions}", "weights"], ["logits"]),
    ]
    spread = np.linspace(-1, 1, EDGE * EDGE * width, dtype=np.float32).reshape(EDGE * EDGE, width)
    weights = np.linspace(-1, 1, width * CLASSES, dtype=np.float32).reshape(width, CLASSES) / width
    return _graph(nodes, [spread, weights], ["spread", "weights"], ["N", 1, EDGE, EDGE])


def mean_of_any_size() -> bytes:
    """The mean grey value times 1, 2 and 3, for images of any size."""
    nodes = [
        helper.make_node("ReduceMean", ["image", "axes"], ["mean"], keepdims=0),
        helper.make_node("MatMul", ["mean", "factors"], ["logits"]),
    ]
    factors = np.array([[1, 2, 3]], np.float32)
    return _graph(nodes, [np.array([2, 3]), factors], ["axes", "factors"], ["N", 1, "H", "W"])


def flat_input() -> bytes:
    """An input of rank 2, which no image has."""
    node = helper.make_node("MatMul", ["image", "weights"], ["logits"])
    return _graph([node], [np.ones((EDGE, CLASSES), np.float32)], ["weights"], ["N", EDGE])


def two_outputs() -> bytes:
    """Logits and, as a second output, the pixels."""
    model = onnx.load_from_string(linear())
    model.graph.output.append(helper.make_tensor_value_info("pixels", TensorProto.FLOAT, ["N", EDGE * EDGE]))
    return model.SerializeToString()


def _graph(
    nodes: Sequence[onnx.NodeProto],
    constants: Sequence[np.ndarray],
    names: Sequence[str],
    shape: Sequence[int | str],
    *,
    element: int = TensorProto.FLOAT,
    classes: int = CLASSES,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("image", element, shape)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [shape[0], classes])],
        [numpy_helper.from_array(value, name) for name, value in zip(names, constants, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model.SerializeToString()
