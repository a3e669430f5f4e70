"""Rules for ONNX graphs: their time and memory must not depend on the content of an image, their answers only on it.

Only the process that checks graphs imports this module: a serving process never imports `onnx`.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import onnx
from onnx import numpy_helper

from lifelong_core.values.errors import InvalidInputError
from lifelong_service.graphs.image_values import Functions, check_image_values, names_read, subgraphs

MAXIMUM_NODES: Final = 100_000
"""Largest number of nodes, with subgraphs and each call of a function; large vision transformers have some 5,000."""
DOMAINS: Final = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc"})
"""Domains of operators that ONNX Runtime has without another library."""
LOOPS: Final = frozenset(
    {"Loop", "Scan", "SequenceMap", "BeamSearch", "WhisperBeamSearch", "GreedySearch", "Sampling"}
)
PROGRAMS: Final = frozenset({"EPContext", "PythonOp", "PythonOpGrad", "TritonOp", "ATen"})
"""Operators that run or open something outside the graph."""
RANDOM: Final = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
"""Operators that draw random numbers, also with a seed: the next run draws other ones."""
_DROPOUTS: Final[Mapping[str, tuple[int, int]]] = {
    "Dropout": (1, 2),
    "BitmaskDropout": (1, 2),
    "BiasDropout": (3, 4),
    "BitmaskBiasDropout": (3, 4),
}
"""Operators that draw random numbers in training mode, and their inputs with the ratio and the mode."""
_NAME_LENGTH: Final = 40

Function: TypeAlias = "tuple[str, str]"
Container: TypeAlias = "onnx.GraphProto | onnx.FunctionProto"

_EVALUATION_HINT: Final = (
    "Export it in evaluation mode: model.eval() before torch.onnx.export, without training=TrainingMode.TRAINING. With"
    " the operator in LIFELONG_PERMITTED_OPERATORS it is taken if the answers of two runs and orders agree."
)
_PLAIN_HINT: Final = (
    "Export a plain classifier. If you trust the file, name the operator in LIFELONG_PERMITTED_OPERATORS."
)


def check_rules(model: onnx.ModelProto, *, permitted: Collection[str] = ()) -> None:
    """Check that a graph terminates, opens no files, and has sizes that do not depend on values of the image.

    Args:
        model: the graph and its functions.
        permitted: operators that are accepted although a rule forbids them.

    Raises:
        InvalidInputError: a rule is broken.
    """
    functions = {(function.domain, function.name): function for function in model.functions}
    if len(functions) < len(model.functions):
        raise _refused("two functions of the graph have the same name.")
    if any(function.domain in DOMAINS for function in model.functions):
        # ONNX Runtime would run its own operator of that name instead.
        raise _refused("a function of the graph is in a domain of ONNX Runtime's own operators.")
    _check_size(model, functions)
    for container in (model.graph, *model.functions):
        for node in _all_nodes(container):
            _check_operator(node, functions, permitted)
    check_image_values(model, functions, permitted=permitted, forbid=_forbidden)


def check_image_is_used(model: onnx.ModelProto) -> None:
    """Check that the outputs depend on the image.

    Raises:
        InvalidInputError: every image gets the same answer.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    if _used(model.graph).isdisjoint({entry.name for entry in model.graph.input} - constants):
        raise _refused(
            "the outputs do not depend on the image: every image gets the same answer.",
            hint="Check the export.",
        )


def _used(graph: onnx.GraphProto) -> set[str]:
    """Return the names from whose values the outputs are computed; nodes may be in any order."""
    made_by = {name: node for node in graph.node for name in node.output}
    waiting, used = [entry.name for entry in graph.output], set[str]()
    while waiting:
        name = waiting.pop()
        if name in used:
            continue
        used.add(name)
        node = made_by.get(name)
        if node is not None and node.op_type not in ("Shape", "Size"):
            waiting += names_read(node)
    return used


def check_evaluation_mode(model: onnx.ModelProto, *, permitted: Collection[str] = ()) -> None:
    """Check that a graph draws no random numbers and takes no statistics of the batch, as layers do in training.

    Nodes that no output depends on may.

    Args:
        model: the graph and its functions, with all weights inside.
        permitted: operators that are accepted all the same.

    Raises:
        InvalidInputError: it does, or a dropout has a mode that is no constant.
    """
    functions = {(function.domain, function.name): function for function in model.functions}
    used = _used(model.graph)
    nodes = [node for node in model.graph.node if not used.isdisjoint(node.output)]
    _check_mode(nodes, _single_values(model.graph.initializer), functions, permitted)


def _check_mode(
    nodes: Sequence[onnx.NodeProto],
    known: Mapping[str, float],
    functions: Functions,
    permitted: Collection[str],
) -> None:
    """Check nodes where the constants of one element are known by name."""
    known = {**known, **{name: value for node in nodes for name, value in _constant(node).items()}}
    for node in nodes:
        kind = node.op_type
        function = functions.get((node.domain, kind))
        if function is not None:
            inner = {
                formal: known[given]
                for formal, given in zip(function.input, node.input, strict=False)
                if given in known
            }
            _check_mode(function.node, inner, functions, permitted)
            continue
        for graph in _branches(node, known):
            _check_mode(graph.node, {**known, **_single_values(graph.initializer)}, functions, permitted)
        if kind in ("Identity", "Cast") and node.input[0] in known:
            known[node.output[0]] = known[node.input[0]]
        elif kind == "Not" and node.input[0] in known:
            known[node.output[0]] = not known[node.input[0]]
        if kind not in permitted and (why := _training(node, known)) is not None:
            raise _forbidden(node, why, hint=_EVALUATION_HINT)


def _branches(node: onnx.NodeProto, known: Mapping[str, float]) -> Iterable[onnx.GraphProto]:
    """Return the subgraphs of a node that may run: one of an `If` with a constant condition."""
    if node.op_type != "If" or node.input[0] not in known:
        return subgraphs(node)
    name = "then_branch" if known[node.input[0]] else "else_branch"
    return [attribute.g for attribute in node.attribute if attribute.name == name]


def _training(node: onnx.NodeProto, known: Mapping[str, float]) -> str | None:
    """Return why a node is in training mode; None: it is not."""
    kind = node.op_type
    if kind in RANDOM:
        return "it draws random numbers, so one image gets different answers"
    if kind == "BatchNormalization" and any(
        attribute.name == "training_mode" and attribute.i for attribute in node.attribute
    ):
        return "it is in training mode and uses the statistics of the batch"
    if kind in _DROPOUTS:
        ratio, mode = (node.input[place] if place < len(node.input) else "" for place in _DROPOUTS[kind])
        if mode and known.get(mode, 1) and known.get(ratio, 1):
            return "it is in training mode and draws random numbers, so one image gets different answers"
    return None


def _single_values(tensors: Iterable[onnx.TensorProto]) -> dict[str, float]:
    """Return the tensors of one element by name."""
    found = ((tensor.name, numpy_helper.to_array(tensor)) for tensor in tensors if _elements(tensor) == 1)
    return {name: float(array.item()) for name, array in found if array.dtype.kind in "biuf"}


def _elements(tensor: onnx.TensorProto) -> int:
    return math.prod(tensor.dims)


def _constant(node: onnx.NodeProto) -> dict[str, float]:
    """Return the value of a constant node of one element by the name of its output."""
    if node.op_type != "Constant":
        return {}
    values: list[float] = []
    for attribute in node.attribute:
        if attribute.name == "value":
            values += _single_values([attribute.t]).values()
        elif attribute.name in ("value_int", "value_float"):
            values.append(attribute.i or attribute.f)
    return dict(zip(node.output, values, strict=False))


def _check_operator(
    node: onnx.NodeProto, functions: Mapping[Function, onnx.FunctionProto], permitted: Collection[str]
) -> None:
    kind = node.op_type
    if (node.domain, kind) in functions or kind in permitted:
        return
    if kind in LOOPS:
        raise _forbidden(node, "how long it runs may depend on the image, and nothing would end it")
    if kind in PROGRAMS or node.domain not in DOMAINS:
        raise _forbidden(node, "it runs or opens something that is not in the graph")


def _check_size(model: onnx.ModelProto, functions: Mapping[Function, onnx.FunctionProto]) -> None:
    """Count the nodes of the graph after all calls of functions are inlined."""
    counted: dict[Function, int | None] = {}

    def count(container: Container) -> int:
        total = 0
        for node in _all_nodes(container):
            name = (node.domain, node.op_type)
            if name not in functions:
                total += 1
            else:
                if name not in counted:
                    counted[name] = None
                    counted[name] = count(functions[name])
                called = counted[name]
                if called is None:
                    raise _refused("a function of the graph calls itself.")
                total += 1 + called
            if total > MAXIMUM_NODES:
                raise _refused(f"the graph has more than {MAXIMUM_NODES} nodes.")
        return total

    if len(functions) > MAXIMUM_NODES:
        raise _refused(f"the graph has more than {MAXIMUM_NODES} functions.")
    try:
        count(model.graph)
    except RecursionError as error:
        raise _refused("the functions of the graph are nested too deeply.") from error


def _all_nodes(container: Container) -> Iterator[onnx.NodeProto]:
    """Return the nodes of a graph or a function, with those of subgraphs."""
    for node in container.node:
        yield node
        for graph in subgraphs(node):
            yield from _all_nodes(graph)


def _forbidden(node: onnx.NodeProto, why: str, *, hint: str = _PLAIN_HINT) -> InvalidInputError:
    kind = node.op_type if node.op_type.isidentifier() and len(node.op_type) <= _NAME_LENGTH else ""
    return _refused(
        f"the operator {kind} is not taken: {why}." if kind else f"an operator is not taken: {why}.",
        hint=hint,
    )


def _refused(message: str, *, hint: str = _PLAIN_HINT) -> InvalidInputError:
    return InvalidInputError(message, field="onnx", hint=hint)
