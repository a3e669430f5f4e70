"""One self-contained ONNX file from a graph and its external data.

Only the process that checks graphs imports this module: a serving process never imports `onnx`.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, Message

from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_service.graphs.rules import check_evaluation_mode, check_rules

HINT = (
    "Export one self-contained file: torch.onnx.export(..., external_data=False), or"
    " onnx.save(onnx.load('model.onnx'), 'whole.onnx')."
)
_PROBABILITIES = {"Softmax": "a softmax", "Sigmoid": "a sigmoid"}
_SHAPES = frozenset(
    {"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "QuantizeLinear", "DequantizeLinear"}
)
"""Operators that do not change values, or only round them."""


def self_contained(
    graph: Path,
    folder: Path | None,
    *,
    maximum_bytes: int,
    permitted: Collection[str] = (),
    private: Sequence[Path] = (),
) -> bytes:
    """Return the graph with all its weights inside; without external data, the file unchanged.

    Args:
        graph: the ONNX file.
        folder: folder of the permitted external files; None: no external data is permitted.
        maximum_bytes: largest total size.
        permitted: operators that are accepted although a rule of `lifelong_service.graphs.rules` forbids them.
        private: files and folders that the graph may not refer to.

    Raises:
        InvalidInputError: it is no ONNX file, breaks a rule, or its external data is not in the folder.
        PayloadTooLargeError: graph and external data together are larger.
    """
    if graph.stat().st_size > maximum_bytes:
        raise _too_large(graph.stat().st_size, maximum_bytes)
    content = graph.read_bytes()
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError as error:
        raise InvalidInputError(
            "this is not an ONNX file.", field="onnx", hint="Send what torch.onnx.export wrote."
        ) from error
    check_rules(model, permitted=permitted)
    check_logits(model)
    outside = [tensor for tensor in tensors_of(model) if tensor.data_location == onnx.TensorProto.EXTERNAL]
    if not outside:
        check_evaluation_mode(model, permitted=permitted)
        return content
    if folder is None:
        raise _refused(f"the weights are in another file, {_location(outside[0])!r}.")
    places = [_place(tensor, folder, private) for tensor in outside]
    total = len(content) + sum(length for _, _, length in places)
    if total > maximum_bytes:
        raise _too_large(total, maximum_bytes)
    for tensor, (file, offset, length) in zip(outside, places, strict=True):
        with file.open("rb") as stream:
            stream.seek(offset)
            tensor.raw_data = stream.read(length)
        tensor.data_location = onnx.TensorProto.DEFAULT
        tensor.ClearField("external_data")
    check_evaluation_mode(model, permitted=permitted)
    return model.SerializeToString()


def tensors_of(message: Message) -> Iterator[onnx.TensorProto]:
    """Return all tensors of a model: initializers and constants, also sparse, of subgraphs and of functions."""
    waiting = [message]
    while waiting:
        one = waiting.pop()
        if isinstance(one, onnx.TensorProto):
            yield one
            continue
        for field, value in one.ListFields():
            if field.message_type is not None:
                waiting += [value] if isinstance(value, Message) else list(value)


def check_logits(model: onnx.ModelProto) -> None:
    """Check that the graph does not end in a softmax or a sigmoid.

    Raises:
        InvalidInputError: it does; its outputs are probabilities.
    """
    if len(model.graph.output) != 1:
        return
    made_by = {name: node for node in model.graph.node for name in node.output}
    node = made_by.get(model.graph.output[0].name)
    while node is not None and node.op_type in _SHAPES and node.input:
        node = made_by.get(node.input[0])
    if node is not None and node.op_type in _PROBABILITIES:
        raise InvalidInputError(
            f"the graph ends in {_PROBABILITIES[node.op_type]}: it gives probabilities, expected logits.",
            field="onnx",
            hint="Export the network without its last activation.",
        )


def _place(tensor: onnx.TensorProto, folder: Path, private: Sequence[Path]) -> tuple[Path, int, int]:
    """Return file, offset and length of a tensor's data; the file is a regular one in the folder."""
    location = _location(tensor)
    entries = {entry.key: entry.value for entry in tensor.external_data}
    path = Path(location)
    if not location or "\0" in location or path.is_absolute() or ".." in path.parts or "\\" in location:
        raise _refused(f"the weights are in {location!r}, expected a file in the folder of the graph.")
    file = (folder / path).resolve()
    if not file.is_relative_to(folder.resolve()):
        raise _refused(f"the weights are in {location!r}, which is a link to outside of the graph's folder.")
    if any(part.startswith(".") for part in path.parts) or any(map(file.is_relative_to, private)):
        raise _refused(f"the weights are in {location!r}, which is no file for weights.")
    if not file.is_file():
        raise _refused(f"the weights are in another file, {location!r}, which is not there.")
    offset, size = _number(entries, "offset", 0), file.stat().st_size
    length = _number(entries, "length", max(0, size - offset))
    if offset + length > size:
        raise _refused(f"the weights need more bytes than {location!r} has.")
    return file, offset, length


def _location(tensor: onnx.TensorProto) -> str:
    return next((entry.value[:200] for entry in tensor.external_data if entry.key == "location"), "")


def _number(entries: dict[str, str], key: str, default: int) -> int:
    text = entries.get(key)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise _refused(f"the {key} of a weight in another file is not a number.")
    return int(text)


def _refused(message: str) -> InvalidInputError:
    return InvalidInputError(message, field="external_data", hint=HINT)


def _too_large(size: int, maximum: int) -> PayloadTooLargeError:
    return PayloadTooLargeError(
        f"graph and weights have {size} bytes, at most {maximum} are taken.",
        field="onnx",
        hint="Raise LIFELONG_MAXIMUM_MODEL_BYTES, up to 2 GB, or export the weights in half precision.",
    )
