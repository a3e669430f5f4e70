"""The reference reading of the sources, and the document under test as plain values."""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from lifelong_core.design.method.loader import load_method, read_parts
from lifelong_core.design.method.schema import Method
from tests import tools

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """The reference reading of the method."""
    return yaml.safe_load(tools.reference("recommendation.yaml").read_text())


@pytest.fixture(scope="session")
def method() -> Method:
    return load_method()


@pytest.fixture(scope="session")
def _parts() -> dict[str, Any]:
    return read_parts()


@pytest.fixture
def parts(_parts: dict[str, Any]) -> dict[str, Any]:
    """A copy of the document that a test may damage."""
    return copy.deepcopy(_parts)
