"""Follows values of the image through a graph: no operator may take them as a size, or run longer for some of them.

Only the process that checks graphs imports this module: a serving process never imports `onnx`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Final, TypeAlias

import onnx

Functions: TypeAlias = "Mapping[tuple[str, str], onnx.FunctionProto]"
Forbid: TypeAlias = "Callable[[onnx.NodeProto, str], Exception]"

_SIZES: Final[Mapping[str, Sequence[int]]] = {
    "AffineGrid": (1,),
    "BlackmanWindow": (0,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "Compress": (1,),
    "ConstantOfShape": (0,),
    "DFT": (1, 2),
    "Expand": (1,),
    "HammingWindow": (0,),
    "HannWindow": (0,),
    "MaxRoiPool": (1,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (0, 1, 2, 3, 4),
    "NonZero": (0,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "ReduceL1": (1,),
    "ReduceL2": (1,),
    "ReduceLogSum": (1,),
    "ReduceLogSumExp": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceProd": (1,),
    "ReduceSum": (1,),
    "ReduceSumSquare": (1,),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "RoiAlign": (1,),
    "STFT": (1, 3),
    "SequenceAt": (1,),
    "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1, 2),
    "TopK": (1,),
    "Unique": (0,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
}
"""Operators with inputs whose values decide the shape of an output or the amount of work, and the places of these
inputs in any version of the operator. Values of the other inputs decide neither."""

_OF_ONNX: Final = """
Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh Attention AveragePool BatchNormalization BitCast BitShift
BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Concat ConcatFromSequence Conv ConvInteger
ConvTranspose Cos Cosh CumProd CumSum DeformConv DepthToSpace DequantizeLinear Det Div Dropout DynamicQuantizeLinear
Einsum Elu Equal Erf Exp EyeLike Flatten Floor GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool
GlobalLpPool GlobalMaxPool Greater GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity
InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax
LpNormalization LpPool MatMul MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not Or
PRelu Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization RNN Reciprocal Relu ReverseSequence
RotaryEmbedding Round Scatter ScatterElements ScatterND Selu SequenceConstruct SequenceLength Shape
Shrink Sigmoid Sign Sin Sinh Size Softmax Softplus Softsign SpaceToDepth Sqrt Sub Sum SwiGLU Swish Tan Tanh
TensorScatter ThresholdedRelu Transpose Trilu Where Xor
"""
_OF_ML: Final = """
ArrayFeatureExtractor Binarizer FeatureVectorizer Imputer LinearClassifier LinearRegressor Normalizer Scaler
"""
_OF_MICROSOFT: Final = """
BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu BitmaskBiasDropout BitmaskDropout DynamicQuantizeLSTM
DynamicQuantizeMatMul FastGelu FusedConv FusedGemm FusedMatMul FusedMatMulActivation GroupNorm Inverse MatMulBnb4
MatMulInteger16 MatMulIntegerToFloat MatMulNBits MultiHeadAttention NhwcConv NhwcFusedConv NhwcMaxPool QAttention
QGemm QLinearAdd QLinearAveragePool QLinearConcat QLinearGlobalAveragePool QLinearLeakyRelu QLinearMul
QLinearReduceMean QLinearSigmoid QLinearSoftmax QLinearWhere QuickGelu ReorderInput ReorderOutput
SimplifiedLayerNormalization SkipGroupNorm SkipLayerNormalization SkipSimplifiedLayerNormalization TransposeMatMul
"""
"""Fused and quantised forms of the above."""
_FREE: Final = frozenset((_OF_ONNX + _OF_ML + _OF_MICROSOFT).split())
"""Operators whose shapes and amount of work do not depend on values of any input."""


def check_image_values(
    model: onnx.ModelProto, functions: Functions, *, permitted: Collection[str], forbid: Forbid
) -> None:
    """Check that no value of the image decides how much memory or time a run takes.

    Shapes of the image may: a graph may take images of any size.

    Args:
        model: the graph.
        functions: its functions by domain and name.
        permitted: operators that are accepted all the same.
        forbid: makes the error for a node and a reason.

    Raises:
        Exception: from `forbid`.
    """
    constants = {tensor.name for tensor in model.graph.initializer}
    images = {entry.name for entry in model.graph.input} - constants
    _Values(functions, permitted, forbid).follow(model.graph.node, images)


class _Values:
    """Names that depend on values of the image.

    Shapes do not, unless a permitted operator computes a shape from values.
    """

    def __init__(self, functions: Functions, permitted: Collection[str], forbid: Forbid) -> None:
        self._functions = functions
        self._permitted = permitted
        self._forbid = forbid
        self._shapes_are_values = False

    def follow(self, nodes: Sequence[onnx.NodeProto], values: set[str]) -> set[str]:
        """Return `values` and the outputs of nodes that are computed from them."""
        for node in self._in_order(nodes):
            values |= {name for name in self._outputs(node, values) if name}
        return values

    def _in_order(self, nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
        """Return each node after those whose outputs it reads: ONNX Runtime takes nodes in any order."""
        made_by = {name: place for place, node in enumerate(nodes) for name in node.output}
        needs = {
            place: {made_by[name] for name in names_read(node) if name in made_by}
            for place, node in enumerate(nodes)
        }
        try:
            return (nodes[place] for place in tuple(TopologicalSorter(needs).static_order()))
        except CycleError:
            raise self._forbid(nodes[0], "the graph has a cycle") from None

    def _outputs(self, node: onnx.NodeProto, values: set[str]) -> Iterable[str]:
        """Return the outputs of a node that depend on values of the image."""
        given = [name in values for name in node.input]
        function = self._functions.get((node.domain, node.op_type))
        if function is not None:
            inner = {name for name, is_value in zip(function.input, given, strict=False) if is_value}
            inner = self.follow(function.node, inner)
            return [own for own, name in zip(node.output, function.output, strict=False) if name in inner]
        within = False
        for graph in subgraphs(node):
            # Inputs of a body hold what the node is given, or earlier turns of a permitted loop.
            inner = self.follow(graph.node, values | {entry.name for entry in graph.input})
            within |= any(entry.name in inner for entry in graph.output)
        self._check(node, given)
        is_shape = node.op_type in ("Shape", "Size") and not self._shapes_are_values
        return node.output if (any(given) or within) and not is_shape else ()

    def _check(self, node: onnx.NodeProto, given: Sequence[bool]) -> None:
        kind = node.op_type
        if kind in _FREE or not any(given):
            return
        places = _SIZES.get(kind)
        if places is not None and not any(given[place : place + 1] == [True] for place in places):
            return
        if kind not in self._permitted:
            raise self._forbid(node, _why(kind))
        self._shapes_are_values = True


def _why(kind: str) -> str:
    if kind == "If":
        return "which of its branches runs depends on the values of the image"
    if kind in _SIZES:
        return "the size of its output depends on the values of the image"
    return "how much memory or time it takes may depend on the values of the image"


def names_read(node: onnx.NodeProto) -> Iterator[str]:
    """Return the inputs of a node, and the outer names that its subgraphs read."""
    yield from node.input
    for graph in subgraphs(node):
        own = {entry.name for entries in (graph.input, graph.initializer) for entry in entries}
        own |= {name for inner in graph.node for name in inner.output}
        read = {entry.name for entry in graph.output}.union(*map(names_read, graph.node))
        yield from read - own


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """Return the graphs within a node: branches and bodies."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs
