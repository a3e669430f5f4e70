"""`lifelong models preprocessing`: write the preprocessing document of a timm or torchvision model."""

import json
from pathlib import Path
from typing import Any

import click
from pydantic import ValidationError

from lifelong.commands.common import only_warned, output_option
from lifelong.printing import echo
from lifelong_core.configuration.plausibility import check_normalisation
from lifelong_core.develop.evaluation_transforms import (
    TimmDataConfig,
    describe_hugging_face_processor,
    describe_timm_transform,
    describe_torchvision_transform,
    read_timm_data_config,
    timm_data_config,
)
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_core.values.validation_errors import as_input_error

FIELD = "SOURCE"


@click.command(short_help="Write the preprocessing document of a timm model.")
@click.argument("source")
@click.option(
    "--size", type=click.IntRange(1, 8192), help="Edge of the model's input, if not timm's default."
)
@click.option("--test-size", is_flag=True, help="Take timm's input size for tests where there is one.")
@output_option("File to write; else standard output.")
def preprocessing(source: str, size: int | None, output: Path | None, *, test_size: bool) -> None:
    """Write the JSON document for `lifelong models add --preprocessing`.

    \b
    SOURCE is one of
      timm/NAME         model of timm: timm/resnet34, timm/resnet34.a1_in1k
      torchvision/NAME  classifier or weights of torchvision
      FILE              JSON: what timm.data.resolve_data_config gave,
                        or the config.json of a timm model,
                        or a preprocessor_config.json of Hugging Face

    The document does what the library's evaluation transform does. Use it if your model was
    evaluated with that transform. docs/preprocessing.md explains all fields.
    """
    library, _, name = source.partition("/")
    if (size is not None or test_size) and library != "timm":
        raise InvalidInputError("only timm/NAME takes it.", field="--test-size" if test_size else "--size")
    if name and library == "timm":
        described = _described_by_timm(name, size=size, test_size=test_size)
    elif name and library == "torchvision":
        described = _described_by_torchvision(name)
    else:
        described = _described_by_file(Path(source))
    document = Preprocessing.model_validate(described)
    with only_warned(hint="`lifelong models add` takes it only with a reason."):
        check_normalisation(document)
    text = _formatted(document.model_dump(mode="json", exclude_none=True))
    if output is None:
        echo(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
        echo(f"Wrote {output}.", err=True)


def _formatted(document: dict[str, Any]) -> str:
    """JSON with one line per field."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(value)}" for name, value in document.items())
    return f"{{\n{lines}\n}}"


def _described_by_timm(name: str, *, size: int | None, test_size: bool) -> dict[str, Any]:
    try:
        config = timm_data_config(name, size=size, test_size=test_size)
    except ImportError as error:
        raise _not_installed("timm") from error
    return describe_timm_transform(config)


def _described_by_torchvision(name: str) -> dict[str, Any]:
    try:
        return describe_torchvision_transform(name)
    except ImportError as error:
        raise _not_installed("torchvision") from error


def _described_by_file(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise InvalidInputError(
            f"there is no file {file}.", field=FIELD, hint="Give timm/NAME, torchvision/NAME or a JSON file."
        )
    try:
        content = json.loads(file.read_bytes())
    except ValueError as error:
        raise InvalidInputError(f"{file} is not JSON: {error}.", field=FIELD) from error
    if not isinstance(content, dict):
        raise InvalidInputError(f"{file} holds no JSON object.", field=FIELD)
    if "image_mean" in content or "do_resize" in content or "image_processor_type" in content:
        return describe_hugging_face_processor(content)
    try:
        config = read_timm_data_config(content)
    except ValidationError as error:
        raise as_input_error(error, TimmDataConfig) from error
    return describe_timm_transform(config)


def _not_installed(library: str) -> Exception:
    return ConfigurationError(
        f"{library} is not installed.",
        field=FIELD,
        hint='Install the extra, in the clone of lifelong: pip install -c constraints.txt -e ".[develop]"; or'
        " give a JSON file instead.",
    )
