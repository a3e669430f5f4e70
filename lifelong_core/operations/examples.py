"""Answers to the examples of the operations, for the description of the API; a test makes and compares them."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def example_answers() -> dict[str, Any]:
    """The answer to the example of each operation, by the name of the operation."""
    return json.loads(files("lifelong_core.operations").joinpath("examples.json").read_text(encoding="utf-8"))
