"""Graphs in training mode are refused, whatever their batch axis; those in evaluation mode are taken."""

from contextlib import nullcontext

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from lifelong_core.values.errors import InvalidInputError
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.rules import check_evaluation_mode, check_image_is_used, check_rules
from lifelong_service.graphs.self_contained import check_logits
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import GREY

TRUE, FALSE = np.bool_(True), np.bool_(False)


def graph(
    *nodes: onnx.NodeProto, batch: int | str = 1, functions: object = (), **constants: object
) -> onnx.ModelProto:
    """Nodes that make `logits` of `sums`, the linear logits."""
    model = onnx.load_from_string(onnx_graphs.linear(batch=batch))
    model.graph.node[-1].output[0] = "sums"
    model.graph.node.extend(nodes)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
    )
    model.functions.extend(functions)
    model.opset_import.append(helper.make_opsetid("local", 1))
    return model


def dropout(mode: str = "mode", output: str = "logits", ratio: str = "") -> onnx.NodeProto:
    return helper.make_node("Dropout", ["sums", ratio, mode], [output])


def in_branch(*modes: str) -> onnx.NodeProto:
    value = helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)
    branches = [
        helper.make_graph([dropout(mode, "inner")], name, [], [value])
        for name, mode in zip(("yes", "other"), modes or ("mode", "mode"), strict=True)
    ]
    return helper.make_node("If", ["condition"], ["logits"], then_branch=branches[0], else_branch=branches[1])


def of_function(mode: str) -> tuple[onnx.NodeProto, onnx.FunctionProto]:
    body = helper.make_function(
        "local", "Layer", ["sums", "mode"], ["out"], [dropout(output="out")], [helper.make_opsetid("", 18)]
    )
    return helper.make_node("Layer", ["sums", mode], ["logits"], domain="local"), body


def normalisation(training: int) -> onnx.NodeProto:
    return helper.make_node(
        "BatchNormalization", ["sums", "one", "zero", "zero", "one"], ["logits"], training_mode=training
    )


LAYER, BODY = of_function("mode")
STATISTICS = {"one": np.ones(3, np.float32), "zero": np.zeros(3, np.float32)}


@pytest.mark.parametrize(
    ("model", "operator"),
    [
        (graph(dropout(), mode=TRUE), "Dropout"),
        (graph(dropout(ratio="ratio"), mode=TRUE, ratio=np.float32(1e-6)), "Dropout"),
        (
            graph(dropout(), helper.make_node("Constant", [], ["mode"], value=numpy_helper.from_array(TRUE))),
            "Dropout",
        ),
        (graph(helper.make_node("Not", ["no"], ["mode"]), dropout(), no=FALSE), "Dropout"),
        (graph(in_branch(), mode=TRUE, condition=TRUE), "Dropout"),
        (graph(in_branch("no", "mode"), mode=TRUE, no=FALSE, condition=FALSE), "Dropout"),
        (graph(LAYER, functions=[BODY], mode=TRUE), "Dropout"),
        (
            graph(
                helper.make_node("RandomNormalLike", ["sums"], ["noise"], seed=1.0),
                helper.make_node("Add", ["sums", "noise"], ["logits"]),
            ),
            "RandomNormalLike",
        ),
        (
            graph(
                helper.make_node("RandomUniform", [], ["noise"], shape=[1, 3]),
                helper.make_node("Add", ["sums", "noise"], ["logits"]),
            ),
            "RandomUniform",
        ),
        (graph(normalisation(1), **STATISTICS), "BatchNormalization"),
    ],
    ids=[
        "initialiser",
        "rare",
        "constant",
        "computed",
        "branch",
        "else",
        "function",
        "seed",
        "uniform",
        "batch",
    ],
)
def test_layers_in_training_mode_are_refused_by_name(model: onnx.ModelProto, operator: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{operator} is not taken") as refused:
        check_evaluation_mode(model)
    assert "model.eval()" in (refused.value.hint or "")
    check_evaluation_mode(model, permitted=[operator])


@pytest.mark.parametrize(
    "operator",
    ["Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"],
)
def test_every_operator_that_draws_random_numbers_is_refused(operator: str) -> None:
    noise = helper.make_node(operator, ["sums"], ["noise"])
    with pytest.raises(InvalidInputError, match=f"{operator} is not taken"):
        check_evaluation_mode(graph(noise, helper.make_node("Add", ["sums", "noise"], ["logits"])))


@pytest.mark.parametrize("operator", ["BitmaskDropout", "BiasDropout", "BitmaskBiasDropout"])
def test_dropouts_that_optimisers_write_are_refused_in_training_mode(operator: str) -> None:
    inputs = ["sums", *["bias", "residual"] * ("Bias" in operator), "ratio", "mode"]
    model = graph(helper.make_node(operator, inputs, ["logits"], domain="com.microsoft"), mode=TRUE)
    with pytest.raises(InvalidInputError, match=f"{operator} is not taken"):
        check_evaluation_mode(model)
    model.graph.initializer[-1].CopyFrom(numpy_helper.from_array(np.asarray(FALSE), "mode"))
    check_evaluation_mode(model)


@pytest.mark.parametrize(
    "model",
    [
        graph(helper.make_node("Dropout", ["sums"], ["logits"])),
        graph(dropout(), mode=FALSE),
        graph(dropout(ratio="ratio"), mode=TRUE, ratio=np.float32(0)),
        graph(helper.make_node("Constant", [], ["mode"], value=numpy_helper.from_array(FALSE)), dropout()),
        graph(helper.make_node("Not", ["yes"], ["mode"]), dropout(), yes=TRUE),
        graph(helper.make_node("Identity", ["no"], ["mode"]), dropout(), no=FALSE),
        graph(helper.make_node("Cast", ["no"], ["mode"], to=TensorProto.BOOL), dropout(), no=np.int64(0)),
        graph(in_branch(), mode=FALSE, condition=TRUE),
        graph(in_branch("no", "mode"), mode=TRUE, no=FALSE, condition=TRUE),
        graph(helper.make_node("Identity", ["sums"], ["logits"]), dropout(output="unused"), mode=TRUE),
        graph(LAYER, functions=[BODY], mode=FALSE),
        graph(normalisation(0), **STATISTICS),
    ],
    ids=[
        "default",
        "initialiser",
        "ratio 0",
        "constant",
        "not",
        "identity",
        "cast",
        "branch",
        "other branch",
        "unused",
        "function",
        "batch",
    ],
)
def test_layers_in_evaluation_mode_are_taken(model: onnx.ModelProto) -> None:
    check_rules(model)
    check_evaluation_mode(model)
    check_image_is_used(model)
    load_classifier(model.SerializeToString(), GREY, classes=3)


@pytest.mark.parametrize("batch", ["N", 1, 4])
def test_answers_that_differ_between_runs_are_refused_when_the_graph_is_loaded(batch: int | str) -> None:
    noise = [
        helper.make_node("RandomNormalLike", ["sums"], ["noise"], scale=1e-3, seed=1.0),
        helper.make_node("Add", ["sums", "noise"], ["logits"]),
    ]
    with pytest.raises(InvalidInputError, match="differently from run to run"):
        load_classifier(graph(*noise, batch=batch).SerializeToString(), GREY, classes=3)


@pytest.mark.parametrize("scale", [1e-9, 1e-4, 1, 1e6])
def test_mixing_is_found_and_rounding_passed_over_whatever_the_size_of_the_logits(scale: float) -> None:
    nodes = [
        helper.make_node("ReduceMean", ["sums"], ["mean"], axes=[0]),
        helper.make_node("Mul", ["mean", "share"], ["part"]),
        helper.make_node("Sub", ["sums", "part"], ["mixed"]),
        helper.make_node("Mul", ["mixed", "scale"], ["logits"]),
    ]
    for share, is_mixed in ((0.5, scale > 1e-6), (1e-6, False)):
        model = graph(*nodes, batch="N", share=np.float32(share), scale=np.float32(scale))
        model.opset_import[0].version = 17
        with pytest.raises(InvalidInputError, match="mixes the images") if is_mixed else nullcontext():
            load_classifier(model.SerializeToString(), GREY, classes=3)


@pytest.mark.parametrize("sign", [1, -1])
def test_mixing_is_found_where_only_one_order_shows_it(sign: int) -> None:
    nodes = [
        helper.make_node("ReduceSum", ["sums"], ["total"], axes=[1]),
        helper.make_node("Gather", ["total", "first"], ["one"]),
        helper.make_node("Gather", ["total", "last"], ["other"]),
        helper.make_node("Sub", ["one", "other"], ["difference"]),
        helper.make_node("Mul", ["difference", "sign"], ["signed"]),
        helper.make_node("Relu", ["signed"], ["part"]),
        helper.make_node("Add", ["sums", "part"], ["logits"]),
    ]
    model = graph(*nodes, batch="N", first=np.int64(0), last=np.int64(-1), sign=np.float32(sign))
    model.opset_import[0].version = 11
    with pytest.raises(InvalidInputError, match="mixes the images"):
        load_classifier(model.SerializeToString(), GREY, classes=3)


@pytest.mark.parametrize("place", [1, 3])
def test_every_place_of_a_fixed_batch_is_compared(place: int) -> None:
    factors = np.ones((4, 1), np.float32)
    factors[place] = 2
    model = graph(helper.make_node("Mul", ["sums", "factors"], ["logits"]), batch=4, factors=factors)
    with pytest.raises(InvalidInputError, match="mixes the images"):
        load_classifier(model.SerializeToString(), GREY, classes=3)


def test_answers_that_are_not_finite_for_an_image_are_refused() -> None:
    model = graph(
        helper.make_node("Sub", ["sums", "sums"], ["zero"]),
        helper.make_node("Div", ["sums", "one"], ["big"]),
        helper.make_node("Sqrt", ["big"], ["logits"]),
        one=np.float32(1),
    )
    with pytest.raises(InvalidInputError, match="NaN or infinity for a"):
        load_classifier(model.SerializeToString(), GREY, classes=3)


def test_answers_that_are_finite_for_a_grey_image_only_are_refused() -> None:
    """NaN where pixels differ from each other."""
    nodes = [
        helper.make_node("ReduceMax", ["image"], ["high"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("ReduceMin", ["image"], ["low"], axes=[1, 2, 3], keepdims=0),
        helper.make_node("Sub", ["low", "high"], ["spread"]),
        helper.make_node("Sqrt", ["spread"], ["root"]),
        helper.make_node("Unsqueeze", ["root"], ["column"], axes=[1]),
        helper.make_node("Add", ["sums", "column"], ["logits"]),
    ]
    model = graph(*nodes, batch="N")
    model.opset_import[0].version = 11
    with pytest.raises(InvalidInputError, match="NaN or infinity for a gradient"):
        load_classifier(model.SerializeToString(), GREY, classes=3)


def test_a_graph_that_does_not_use_the_image_is_refused() -> None:
    model = graph(
        helper.make_node("Identity", ["constant"], ["logits"]), constant=np.ones((1, 3), np.float32)
    )
    with pytest.raises(InvalidInputError, match="do not depend on the image"):
        check_image_is_used(model)
    model = graph(
        helper.make_node("Shape", ["sums"], ["shape"]),
        helper.make_node("ConstantOfShape", ["shape"], ["logits"]),
    )
    with pytest.raises(InvalidInputError, match="do not depend on the image"):
        check_image_is_used(model)


def test_quantised_and_scaled_probabilities_are_refused() -> None:
    nodes = [
        helper.make_node("Softmax", ["sums"], ["shares"], axis=1),
        helper.make_node("QuantizeLinear", ["shares", "step", "zero"], ["bytes"]),
        helper.make_node("DequantizeLinear", ["bytes", "step", "zero"], ["logits"]),
    ]
    with pytest.raises(InvalidInputError, match="softmax"):
        check_logits(graph(*nodes, step=np.float32(1 / 256), zero=np.uint8(0)))
    percent = graph(
        nodes[0], helper.make_node("Mul", ["shares", "hundred"], ["logits"]), hundred=np.float32(100)
    )
    with pytest.raises(InvalidInputError, match="probabilities"):
        load_classifier(percent.SerializeToString(), GREY, classes=3)
