"""Graphs that exceed limits, run other programs or show a secret are refused, not stored, and audited."""

import json
import logging
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper

from lifelong.commands.models.models import models
from lifelong_core.configuration.settings import Settings
from lifelong_core.runtime.graph_check import check_graph, child_environment
from lifelong_core.store import Store
from lifelong_core.values.errors import InvalidInputError
from lifelong_service.graphs.loader import load_classifier
from lifelong_service.graphs.rules import MAXIMUM_NODES, check_rules
from lifelong_service.graphs.self_contained import self_contained
from lifelong_service.graphs.trial import check_answers_differ
from tests.attacks.graphs import CANARY, CORPUS
from tests.attacks.hostile_graph import DOCUMENT, shows_secret
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import GREY, Service
from tests.unit.service.routes.test_operations import error_of

REASONS = {
    "endless_loop": "Loop is not taken: how long it runs",
    "long_scan": "Scan is not taken: how long it runs",
    "constant_of_4_gb": "memory",
    "expanded_to_8_gb": "memory",
    "tiled_to_8_gb": "Tile|memory",
    "random_of_4_gb": "RandomNormal is not taken: it draws random numbers",
    "size_by_pixels": "ConstantOfShape is not taken: the size of its output",
    "size_by_pixels_in_reverse": "ConstantOfShape is not taken: the size of its output",
    "window_by_pixels": "STFT is not taken: the size of its output",
    "branch_by_pixels": "If is not taken: which of its branches runs",
    "loop_named_as_function": "in a domain of ONNX Runtime's own operators",
    "nested_functions": f"more than {MAXIMUM_NODES} nodes",
    "calls_itself": "calls itself",
    "many_nodes": f"more than {MAXIMUM_NODES} nodes",
    "empty_nodes": f"more than {MAXIMUM_NODES} nodes",
    "sparse_of_8_gb": "memory|cannot load",
    "unknown_operator": "Steal is not taken: it runs or opens",
    "runs_python": "PythonOp is not taken: it runs or opens",
    "opens_a_library": "EPContext is not taken: it runs or opens",
    "group_key_beside": "'data/group.key', which is not there",
    "group_key_above": "expected a file in the folder of the graph",
    "process_environment": "expected a file in the folder of the graph",
    "secret_as_shape": r"\(FAIL in Reshape\)",
    "secret_as_output_shape": "another shape",
    "deep_nesting": "not an ONNX file|cannot load",
}

RUN = {name for name, reason in REASONS.items() if "memory" in reason or "FAIL" in reason}
RUN |= {"secret_as_output_shape", "deep_nesting"}
"""Graphs that the process of the check loads or runs; the others are refused when they are read."""


@pytest.mark.parametrize("name", sorted(REASONS.keys() - RUN))
def test_a_hostile_graph_is_refused_when_it_is_read(name: str, tmp_path: Path) -> None:
    hostile = CORPUS[name]()
    (tmp_path / "graph.onnx").write_bytes(hostile.content)
    for file, content in hostile.external_data.items():
        (tmp_path / file).write_bytes(content)
    with pytest.raises(InvalidInputError, match=REASONS[name]) as refused:
        self_contained(tmp_path / "graph.onnx", tmp_path, maximum_bytes=10**9)
    assert refused.value.field in ("onnx", "external_data")
    assert not shows_secret(str(refused.value))


def test_hostile_graphs_are_refused_and_audited_over_http(
    registered: None,
    serve: Callable[..., Service],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    service = serve(request_timeout_seconds=60)  # the reason, not the time of a busy machine, is at stake
    assert REASONS.keys() == CORPUS.keys()
    before = len(service.store.models.list())
    with caplog.at_level(logging.DEBUG):
        for name in ("endless_loop", "group_key_beside", *sorted(RUN)):
            graph = CORPUS[name]()
            files = [("onnx", ("graph.onnx", graph.content))]
            files += [("external_data", (file, content)) for file, content in graph.external_data.items()]
            answer = service.client.post(
                "/v1/admin/models", data={"document": json.dumps(DOCUMENT)}, files=files
            )
            assert answer.status_code in (413, 422), f"{name}: {answer.text}"
            assert not shows_secret(answer.text), f"{name}: {answer.text}"
            error = error_of(answer)
            assert error["field"] in ("onnx", "external_data"), name
            assert re.search(REASONS[name], error["message"]), f"{name}: {error}"
            entry = service.store.audit.list(1)[0]
            assert (entry.action, entry.subject, entry.actor) == (
                "models.refuse",
                "hostile",
                "admin-token",
            ), name
            assert entry.details["size"] == len(graph.content)
            assert entry.details["reason"] == error["message"]
    assert len(service.store.models.list()) == before
    said = capfd.readouterr()
    assert not shows_secret(caplog.text + said.out + said.err + str(service.store.audit.list(100)))


def test_a_hostile_graph_is_refused_and_audited_on_the_command_line(
    registered: None, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(settings.data_directory))
    (tmp_path / "model.onnx").write_bytes(CORPUS["endless_loop"]().content)
    before = len(store.models.list())
    command = ["add", "hostile", "--task", "skin", "--onnx", str(tmp_path / "model.onnx")]
    with pytest.raises(InvalidInputError, match="Loop is not taken") as refused:
        CliRunner().invoke(models, command, catch_exceptions=False)
    assert refused.value.field == "--onnx"
    assert len(store.models.list()) == before
    entry = store.audit.list(1)[0]
    assert (entry.action, entry.subject) == ("models.refuse", "hostile")
    assert entry.actor.startswith("cli:")


def checked(graph: bytes, folder: Path, **settings: object) -> bytes:
    (folder / "model.onnx").write_bytes(graph)
    values = {"data_directory": folder / "data"} | settings
    options = Settings.model_validate(values)
    return check_graph(folder / "model.onnx", GREY, classes=3, settings=options, external_data=folder).content


def test_an_operator_that_is_permitted_is_taken(tmp_path: Path) -> None:
    model = onnx.load_from_string(CORPUS["endless_loop"]().content)
    turns = next(tensor for tensor in model.graph.initializer if tensor.name == "turns")
    turns.CopyFrom(numpy_helper.from_array(np.array(2), "turns"))
    assert checked(model.SerializeToString(), tmp_path, permitted_operators=("Loop",))


def test_memory_is_limited_by_a_setting(tmp_path: Path) -> None:
    model = onnx.load_from_string(CORPUS["constant_of_4_gb"]().content)
    length = next(tensor for tensor in model.graph.initializer if tensor.name == "length")
    length.CopyFrom(numpy_helper.from_array(np.array([2**26]), "length"))
    assert checked(model.SerializeToString(), tmp_path, maximum_graph_memory_bytes=1_500_000_000)
    with pytest.raises(InvalidInputError, match="memory"):
        checked(model.SerializeToString(), tmp_path, maximum_graph_memory_bytes=200_000_000)


def test_the_memory_limit_of_a_worker_does_not_count_in_the_check(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(onnx_graphs.slow(repetitions=1, width=1_000_000))
    program = """
import resource, sys
from pathlib import Path
from lifelong_core.runtime.graph_check import check_graph
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_core.configuration.settings import Settings
_, hard = resource.getrlimit(resource.RLIMIT_DATA)
resource.setrlimit(resource.RLIMIT_DATA, (400_000_000, hard))
grey = Preprocessing(colour="grey", mean=[0.5], standard_deviation=[0.5])
check_graph(Path(sys.argv[1]), grey, classes=3, settings=Settings())
"""
    command = [sys.executable, "-c", program, str(tmp_path / "model.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("share", [0.0, 1e-9])
def test_a_graph_that_answers_every_image_alike_is_refused(share: float) -> None:
    model = onnx.load_from_string(onnx_graphs.linear())
    model.graph.node[-1].output[0] = "sums"
    model.graph.node.append(helper.make_node("Mul", ["sums", "share"], ["part"]))
    model.graph.node.append(node("Add", "part", "constant"))
    for name, value in (("share", np.float32(share)), ("constant", np.array([1, 2, 3], np.float32))):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    classifier = load_classifier(model.SerializeToString(), GREY, classes=3)
    with pytest.raises(InvalidInputError, match="the same logits for 8 different images"):
        check_answers_differ(classifier)


@pytest.mark.parametrize("location", ["data/group.key", ".hidden"])
def test_files_that_hold_no_weights_are_not_read(tmp_path: Path, location: str) -> None:
    model = onnx.load_from_string(onnx_graphs.linear())
    tensor = model.graph.initializer[0]
    (tmp_path / "data").mkdir()
    (tmp_path / location).write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)
    with pytest.raises(InvalidInputError, match="no file for weights"):
        checked(model.SerializeToString(), tmp_path)


def test_a_child_sees_no_secret_and_reaches_no_network() -> None:
    program = """
import os, socket, subprocess
from lifelong_service import confinement
confinement.end_with_parent()
assert confinement.refuse_calls() is None
for refused in (socket.socket, lambda: subprocess.run(["true"]), lambda: os.kill(os.getppid(), 0)):
    try:
        refused()
    except PermissionError:
        print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refused"] * 3


def test_the_environment_of_the_check_holds_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFELONG_DATABASE_URL", "postgresql+psycopg://lifelong:secret@host/db")
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    environment = child_environment(tmp_path)
    assert "secret" not in str(environment)
    assert environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert environment["HOME"] == str(tmp_path)


def classifier(*nodes: onnx.NodeProto, **constants: np.ndarray) -> onnx.ModelProto:
    """Nodes that make `logits` of `image`."""
    return helper.make_model(
        helper.make_graph(
            nodes,
            "graph",
            [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 4, 4])],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])],
            [numpy_helper.from_array(array, name) for name, array in constants.items()],
        )
    )


def test_sizes_by_shapes_are_taken_and_sizes_by_values_are_not() -> None:
    by_shape = [
        helper.make_node("Shape", ["image"], ["shape"]),
        helper.make_node("Expand", ["image", "shape"], ["logits"]),
    ]
    check_rules(classifier(*by_shape))
    by_value = [
        helper.make_node("Cast", ["image"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Expand", ["image", "whole"], ["logits"]),
    ]
    with pytest.raises(InvalidInputError, match="Expand"):
        check_rules(classifier(*by_value))
    check_rules(classifier(*by_value), permitted=["Expand"])
    by_count = [
        helper.make_node("NonZero", ["image"], ["places"]),
        helper.make_node("Shape", ["places"], ["count"]),
        helper.make_node("ConstantOfShape", ["count"], ["logits"]),
    ]
    with pytest.raises(InvalidInputError, match="NonZero"):
        check_rules(classifier(*by_count))
    with pytest.raises(InvalidInputError, match="ConstantOfShape"):
        check_rules(classifier(*by_count), permitted=["NonZero"])


def node(kind: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, ["logits"], **attributes)


@pytest.mark.parametrize(
    "costly",
    [
        node("TopK", "one", "whole"),
        node("Slice", "one", "zero", "whole"),
        node("Reshape", "one", "whole"),
        node("Resize", "one", "floats"),
        node("Resize", "one", "", "", "whole"),
        node("Pad", "one", "whole"),
        node("Split", "one", "whole"),
        node("ReduceMax", "one", "whole"),
        node("RoiAlign", "one", "floats", "zero"),
        node("MelWeightMatrix", "one", "whole", "one", "floats", "floats"),
        node("Compress", "one", "is_bright"),
        node("Unique", "floats"),
        node("SequenceAt", "list", "whole"),
        node("NonMaxSuppression", "floats", "floats"),
        node("StringSplit", "text"),
        node("GridSampleOfTomorrow", "image", "image", domain="com.microsoft"),
    ],
    ids=lambda one: one.op_type + "".join(name and name[0] for name in one.input),
)
def test_an_operator_whose_size_or_time_may_depend_on_values_of_the_image_is_refused(
    costly: onnx.NodeProto,
) -> None:
    values = [
        helper.make_node("ReduceMax", ["image"], ["floats"], keepdims=0),
        helper.make_node("Cast", ["floats"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Cast", ["floats"], ["text"], to=TensorProto.STRING),
        helper.make_node("Cast", ["floats"], ["is_bright"], to=TensorProto.BOOL),
        helper.make_node("SequenceConstruct", ["one"], ["list"]),
    ]
    with pytest.raises(InvalidInputError, match=f"operator {costly.op_type} is not"):
        check_rules(classifier(*values, costly, one=np.ones(1), zero=np.zeros(1, np.int64)))


@pytest.mark.parametrize(
    "cheap",
    [
        node("TopK", "image", "zero"),
        node("GridSample", "image", "image"),
        node("Resize", "image", "", "", "shape"),
        node("Where", "is_bright", "image", "image"),
        node("Gather", "one", "whole"),
        node("OneHot", "whole", "one", "image"),
        node("NonZero", "one"),
    ],
    ids=lambda one: one.op_type,
)
def test_an_operator_is_taken_where_values_of_the_image_decide_neither_size_nor_time(
    cheap: onnx.NodeProto,
) -> None:
    values = [
        # An output that is left out has the empty name, as an input that is left out.
        helper.make_node("Dropout", ["image"], ["same", ""]),
        helper.make_node("Cast", ["same"], ["whole"], to=TensorProto.INT64),
        helper.make_node("Cast", ["same"], ["is_bright"], to=TensorProto.BOOL),
        helper.make_node("Shape", ["image"], ["shape"]),
    ]
    check_rules(classifier(*values, cheap, one=np.ones(1), zero=np.zeros(1, np.int64)))


def test_a_branch_is_chosen_by_the_shape_of_the_image_and_not_by_its_values() -> None:
    def chosen_by(condition: str) -> onnx.ModelProto:
        number = helper.make_tensor_value_info("number", TensorProto.FLOAT, None)
        branches = [
            helper.make_graph([helper.make_node(kind, ["image"], ["number"])], kind, [], [number])
            for kind in ("Abs", "Neg")
        ]
        return classifier(
            helper.make_node("Shape", ["image"], ["shape"]),
            helper.make_node("ReduceMax", ["shape"], ["longest"], keepdims=0),
            helper.make_node("ReduceMax", ["image"], ["brightest"], keepdims=0),
            helper.make_node("Greater", [condition, "limit"], ["is_more"]),
            node("If", "is_more", then_branch=branches[0], else_branch=branches[1]),
            limit=np.array(1.0),
        )

    check_rules(chosen_by("longest"))
    with pytest.raises(InvalidInputError, match="If is not taken"):
        check_rules(chosen_by("brightest"))
    check_rules(chosen_by("brightest"), permitted=["If"])


def test_two_functions_of_one_name_are_refused() -> None:
    opsets = [helper.make_opsetid("", 18)]
    model = classifier(helper.make_node("f", ["image"], ["logits"], domain="own"))
    for _ in range(2):
        body = [helper.make_node("Abs", ["x"], ["y"])]
        model.functions.append(helper.make_function("own", "f", ["x"], ["y"], body, opsets))
    with pytest.raises(InvalidInputError, match="the same name"):
        check_rules(model)


@pytest.mark.parametrize("within", ["function", "branch"])
def test_a_size_by_values_is_found_wherever_it_hides(within: str) -> None:
    inner = [
        helper.make_node("Cast", ["x"], ["whole"], to=TensorProto.INT64),
        helper.make_node("ConstantOfShape", ["whole"], ["y"]),
    ]
    if within == "function":
        opsets = [helper.make_opsetid("", 18)]
        model = classifier(helper.make_node("f", ["image"], ["logits"], domain="own"))
        model.functions.append(helper.make_function("own", "f", ["x"], ["y"], inner, opsets))
    else:
        inner[0].input[0] = "image"
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        branch = helper.make_graph(inner, "branch", [], [output])
        node = helper.make_node("If", ["yes"], ["logits"], then_branch=branch, else_branch=branch)
        model = classifier(node, yes=np.array(True))
    with pytest.raises(InvalidInputError, match="ConstantOfShape"):
        check_rules(model)


@pytest.mark.parametrize("name", ["secret_as_shape", "secret_as_output_shape"])
def test_a_worker_shows_no_content_of_a_stored_graph(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = onnx.load_from_string(CORPUS[name]().content)
    for tensor in model.graph.initializer:
        if tensor.external_data:
            tensor.raw_data, tensor.data_location = CANARY[:4], TensorProto.DEFAULT
            tensor.ClearField("external_data")
    with pytest.raises(InvalidInputError) as refused:
        load_classifier(model.SerializeToString(), GREY, classes=3)
    said = capfd.readouterr()
    assert not shows_secret(f"{refused.value} {said.out} {said.err}")
