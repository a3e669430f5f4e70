"""Populations with known class densities."""

import pytest

from tests.unit.deploy.conftest import GaussianPopulation


@pytest.fixture(scope="session")
def population():
    return GaussianPopulation
