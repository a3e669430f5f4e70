"""Evaluation transforms of timm and torchvision as preprocessing documents of this product.

Sources: `timm.data.transforms_factory.transforms_imagenet_eval` (timm 1.0) and
`torchvision.transforms._presets.ImageClassification` (torchvision 0.28).
"""

import math
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field

from lifelong_core.values.errors import InvalidInputError
from lifelong_core.values.validation_errors import suggest

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STANDARD_DEVIATION = (0.229, 0.224, 0.225)

_COLOURS = {1: "grey", 3: "rgb"}
_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos")

_HUGGING_FACE_FILTERS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
_HUGGING_FACE_FIELDS = (
    "do_resize",
    "size",
    "resample",
    "do_center_crop",
    "crop_size",
    "do_rescale",
    "rescale_factor",
    "do_normalize",
    "image_mean",
    "image_std",
)
_HUGGING_FACE_WORDS = ("image_processor_type", "feature_extractor_type", "processor_class", "do_convert_rgb")
"""Fields that change nothing here: images are always converted to RGB."""

Document = dict[str, Any]
"""A preprocessing document as plain JSON values; `Preprocessing` validates it."""

_OPERATORS = ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_MISSING = "operator torchvision::nms does not exist"


class TimmDataConfig(BaseModel):
    """The data config that `timm.data.resolve_data_config` returns, with timm's defaults.

    `pretrained_cfg` in a model's `config.json` has the same fields, and others that do not concern images.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input_size: tuple[int, Annotated[int, Field(gt=0)], Annotated[int, Field(gt=0)]] = (3, 224, 224)
    interpolation: str = "bicubic"
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STANDARD_DEVIATION
    crop_pct: float = Field(default=0.875, gt=0)
    crop_mode: str = "center"


def timm_data_config(name: str, *, size: int | None = None, test_size: bool = False) -> TimmDataConfig:
    """Return the data config of a timm model, without its weights; nothing is downloaded.

    Args:
        name: architecture, or architecture and tag: `resnet34`, `resnet34.a1_in1k`.
        size: edge of the model's input in pixels; None: the edge in the config.
        test_size: use the input size and crop for testing if the config has them.

    Raises:
        InvalidInputError: timm has no such model.
        ImportError: timm is not installed.
    """
    declare_missing_operators()
    import timm

    try:
        config = timm.get_pretrained_cfg(name)
    except RuntimeError:  # the architecture exists, the tag does not
        config = None
    if config is None:
        raise _unknown("timm", name, [*timm.list_models(), *timm.list_pretrained()])
    resolve: Any = import_module("timm.data").resolve_data_config
    resolved = resolve(
        {"input_size": (3, size, size)} if size else {},
        pretrained_cfg=config.to_dict(),
        use_test_size=test_size,
    )
    return TimmDataConfig.model_validate(resolved)


def read_timm_data_config(document: Mapping[str, Any]) -> TimmDataConfig:
    """Return the data config in a JSON object: a result of `resolve_data_config`, or a model's `config.json`.

    Raises:
        pydantic.ValidationError: a field is unknown or has a wrong value.
    """
    nested = document.get("pretrained_cfg")
    if isinstance(nested, Mapping):
        fields = cast(Mapping[str, Any], nested)
        known = {name: fields[name] for name in TimmDataConfig.model_fields if fields.get(name) is not None}
        return TimmDataConfig.model_validate(known)
    return TimmDataConfig.model_validate(document)


def describe_timm_transform(config: TimmDataConfig) -> Document:
    """Return the preprocessing document of timm's `create_transform(**config, is_training=False)`.

    Raises:
        InvalidInputError: the transform has a step that preprocessing lacks, such as padding.
    """
    channels, height, width = config.input_size
    if channels not in _COLOURS:
        raise _unsupported("input_size", f"{channels} channels", "1 (grey) or 3 (rgb)")
    if config.crop_pct > 1:
        raise _unsupported("crop_pct", f"{config.crop_pct}, which pads the image", "at most 1")
    scaled_height, scaled_width = (math.floor(edge / config.crop_pct) for edge in (height, width))
    match config.crop_mode:
        case "squash":
            mode = "exact"
        case "center" if scaled_height == scaled_width:
            mode = "shortest_edge"
        case "center":
            raise _unsupported(
                "input_size",
                f"{height} x {width} with crop_mode center, which scales by a rule of its own",
                "a square size, or crop_mode squash",
            )
        case "border":
            raise _unsupported(
                "crop_mode",
                "border, which pads the image, and preprocessing has no padding",
                "center or squash",
            )
        case _:
            raise _unsupported("crop_mode", config.crop_mode, "center or squash")
    if not len(config.mean) == len(config.std) == channels:
        raise _unsupported(
            "mean", f"{len(config.mean)} values of mean and {len(config.std)} of std", f"{channels} of each"
        )
    return _document(
        colour=_COLOURS[channels],
        resize=(mode, scaled_height, scaled_width),
        crop=(height, width),
        interpolation=config.interpolation,
        mean=config.mean,
        standard_deviation=config.std,
    )


def describe_torchvision_transform(name: str) -> Document:
    """Return the preprocessing document of torchvision's evaluation transform; nothing is downloaded.

    Args:
        name: classifier (`resnet34`, with its default weights) or weights (`ResNet34_Weights.IMAGENET1K_V1`).

    Raises:
        InvalidInputError: torchvision has no such classifier or weights.
        ImportError: torchvision is not installed.
    """
    declare_missing_operators()
    models: Any = import_module("torchvision.models")
    known: dict[str, Any] = {}
    for model in models.list_models(module=models):
        weights = models.get_model_weights(model)
        known[model] = weights["DEFAULT"]
        known.update({str(entry): entry for entry in weights})
    if name not in known:
        raise _unknown("torchvision", name, known)
    transform = known[name].transforms()
    (resize,), (crop,) = transform.resize_size, transform.crop_size
    return _document(
        colour="rgb",
        resize=("shortest_edge", resize, resize),
        crop=(crop, crop),
        interpolation=transform.interpolation.value,
        mean=transform.mean,
        standard_deviation=transform.std,
    )


def describe_hugging_face_processor(config: Mapping[str, Any]) -> Document:
    """Return the preprocessing document of a `preprocessor_config.json` of Hugging Face.

    Raises:
        InvalidInputError: a field is unknown, or has a value that preprocessing lacks.
    """
    known = {*_HUGGING_FACE_FIELDS, *_HUGGING_FACE_WORDS}
    for name, value in config.items():
        if name not in known and value not in (None, False):
            raise _unsupported(name, f"{value!r}", f"only these fields: {', '.join(_HUGGING_FACE_FIELDS)}")
    document: Document = {}
    if config.get("do_resize", True):
        size, resample = config.get("size"), config.get("resample")
        if type(resample) is not int or resample not in _HUGGING_FACE_FILTERS:
            raise _unsupported(
                "resample", f"{resample!r}", "0 (nearest), 1 (lanczos), 2 (bilinear) or 3 (bicubic)"
            )
        match size:
            case {"shortest_edge": edge, **rest} if not rest:
                resize = {"mode": "shortest_edge", "height": edge, "width": edge}
            case {"height": height, "width": width, **rest} if not rest:
                resize = {"mode": "exact", "height": height, "width": width}
            case _:
                raise _unsupported("size", f"{size!r}", "height and width, or shortest_edge")
        document["resize"] = {**resize, "interpolation": _HUGGING_FACE_FILTERS[resample]}
    if config.get("crop_size") is not None and config.get("do_center_crop") is None:
        raise _unsupported("do_center_crop", "a crop_size without it", "true or false")
    if config.get("do_center_crop"):
        match config.get("crop_size"):
            case {"height": height, "width": width, **rest} if not rest:
                document["centre_crop"] = {"height": height, "width": width}
            case other:
                raise _unsupported("crop_size", f"{other!r}", "height and width")
    factor = config.get("rescale_factor", 1 / 255)
    if not config.get("do_rescale", True):
        raise _unsupported("do_rescale", "false", "true: pixels are scaled to 0..1")
    if not isinstance(factor, int | float) or not math.isclose(factor, 1 / 255, rel_tol=1e-6):
        raise _unsupported("rescale_factor", f"{factor!r}", "1/255")
    if config.get("do_normalize", True):
        for field, name in (("mean", "image_mean"), ("standard_deviation", "image_std")):
            if not isinstance(config.get(name), list):
                raise _unsupported(name, f"{config.get(name)!r}", "one number for each channel")
            document[field] = config[name]
    return document


def _document(
    *,
    colour: str,
    resize: tuple[str, int, int],
    crop: tuple[int, int],
    interpolation: str,
    mean: Iterable[float],
    standard_deviation: Iterable[float],
) -> Document:
    if interpolation not in _INTERPOLATIONS:
        raise _unsupported("interpolation", interpolation, f"one of {', '.join(_INTERPOLATIONS)}")
    mode, height, width = resize
    document: Document = {
        "colour": colour,
        "resize": {"mode": mode, "height": height, "width": width, "interpolation": interpolation},
        "mean": list(mean),
        "standard_deviation": list(standard_deviation),
    }
    if mode == "shortest_edge" or (height, width) != crop:
        document["centre_crop"] = {"height": crop[0], "width": crop[1]}
    return document


def _unsupported(field: str, found: str, expected: str) -> InvalidInputError:
    return InvalidInputError(
        f"preprocessing cannot represent {found}; expected {expected}.",
        field=field,
        hint="Evaluate the model with such a transform and give that one.",
    )


def _unknown(library: str, name: str, known: Iterable[str]) -> InvalidInputError:
    return InvalidInputError(
        f"{library} has no model {name!r}.",
        hint=suggest(name, list(known)) or f"Look at the models that {library} lists.",
    )


_declarations: list[Any] = []
"""torch removes a declaration together with its library object, so the object is kept."""


def declare_missing_operators() -> bool:
    """Import torchvision; if its operators are missing, declare them and import it again.

    Returns:
        Whether the declarations were needed.

    Raises:
        ImportError: torch or torchvision is not installed.
    """
    try:
        import_module("torchvision")
    except RuntimeError as error:
        if _MISSING not in str(error):
            raise
    else:
        return False
    library: Any = import_module("torch.library").Library("torchvision", "FRAGMENT")
    for name in _OPERATORS:
        library.define(name + _SCHEMA)
    _declarations.append(library)
    import_module("torchvision")
    return True
