"""Rules for ONNX graphs: their time and memory must not depend on the content of an image.

Only the process that checks graphs imports this module: a serving process never imports `onnx`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

import onnx

from lifelong_core.errors import InvalidInputError

MAXIMUM_NODES: Final = 100_000
"""Largest number of nodes, with subgraphs and each call of a function; large vision transformers have some 5,000."""
DOMAINS: Final = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft", "com.microsoft.nchwc"})
"""Domains of operators that ONNX Runtime has without another library."""
LOOPS: Final = frozenset(
    {"Loop", "Scan", "SequenceMap", "BeamSearch", "WhisperBeamSearch", "GreedySearch", "Sampling"}
)
PROGRAMS: Final = frozenset({"EPContext", "PythonOp", "PythonOpGrad", "TritonOp", "ATen"})
"""Operators that run or open something outside the graph."""
_SIZES: Final[Mapping[str, Sequence[int]]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "DFT": (1,),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1),
    "OneHot": (1,),
    "Pad": (1,),
    "Range": (0, 1, 2),
    "Resize": (2, 3),
    "Tile": (1,),
    "Upsample": (1,),
}
"""Operators whose output may be larger than their inputs, and the inputs with its size."""
_SELECTIONS: Final = frozenset(
    {"Compress", "NonMaxSuppression", "NonZero", "Slice", "Split", "TopK", "Unique"}
)
"""Operators whose output size depends on the values of an input."""
_NAME_LENGTH: Final = 40

Function: TypeAlias = "tuple[str, str]"
Container: TypeAlias = "onnx.GraphProto | onnx.FunctionProto"


def check_rules(model: onnx.ModelProto, *, permitted: Collection[str] = ()) -> None:
    """Check that a graph terminates, opens no files, and has sizes that do not depend on values of the image.

    Args:
        model: the graph and its functions.
        permitted: operators that are accepted although a rule forbids them.

    Raises:
        InvalidInputError: a rule is broken.
    """
    functions = {(one.domain, one.name): one for one in model.functions}
    _check_size(model, functions)
    for container in (model.graph, *model.functions):
        for node in _all_nodes(container):
            _check_operator(node, functions, permitted)
    constants = {tensor.name for tensor in model.graph.initializer}
    images = {entry.name for entry in model.graph.input} - constants
    _Sizes(functions, permitted).follow(model.graph.node, images)


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
        for graph in _subgraphs(node):
            yield from _all_nodes(graph)


def _subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


class _Sizes:
    """Follows values of the image through a graph, to operators that could use them as a size.

    Shapes do not count as values, unless an operator computes a shape from values.
    """

    def __init__(self, functions: Mapping[Function, onnx.FunctionProto], permitted: Collection[str]) -> None:
        self._functions = functions
        self._permitted = permitted
        self._shapes_are_values = False

    def follow(self, nodes: Sequence[onnx.NodeProto], values: set[str]) -> set[str]:
        """Return the names that depend on values of the image: `values`, and results computed from them."""
        for node in nodes:
            if self._makes_values(node, values):
                values |= set(node.output)
        return values

    def _makes_values(self, node: onnx.NodeProto, values: set[str]) -> bool:
        given = [name in values for name in node.input]
        function = self._functions.get((node.domain, node.op_type))
        if function is not None:
            inner = {name for name, is_value in zip(function.input, given, strict=False) if is_value}
            return any(name in self.follow(function.node, inner) for name in function.output)
        within = [
            any(entry.name in found for entry in graph.output)
            for graph in _subgraphs(node)
            for found in (self.follow(graph.node, set(values)),)
        ]
        self._check(node, given)
        if node.op_type in ("Shape", "Size") and not self._shapes_are_values:
            return False
        return any(given) or any(within)

    def _check(self, node: onnx.NodeProto, given: Sequence[bool]) -> None:
        sizes = _SIZES.get(node.op_type, ())
        if any(given[place : place + 1] == [True] for place in sizes) and node.op_type not in self._permitted:
            raise _forbidden(node, "the size of its output depends on the values of the image")
        first = 1 if node.op_type in ("Slice", "Split", "TopK") else 0
        if node.op_type in _SELECTIONS and any(given[first:]):
            self._shapes_are_values = True


def _forbidden(node: onnx.NodeProto, why: str) -> InvalidInputError:
    kind = node.op_type if node.op_type.isidentifier() and len(node.op_type) <= _NAME_LENGTH else ""
    return _refused(
        f"the operator {kind} is not taken: {why}." if kind else f"an operator is not taken: {why}."
    )


def _refused(message: str) -> InvalidInputError:
    return InvalidInputError(
        message,
        field="onnx",
        hint="Export a plain classifier. If you trust the file, name the operator in LIFELONG_PERMITTED_OPERATORS.",
    )
