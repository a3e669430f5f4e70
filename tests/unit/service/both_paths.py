"""Tests of a module that imports `bypasses` run twice: predictions bypass the framework, or pass it.

The contract of `/v1/predict` and `/v1/logits` (answers, guards, error bodies, limits, metrics) is one on both paths.
"""

import pytest


@pytest.fixture(params=[True, False], ids=["direct", "framework"])
def bypasses(request: pytest.FixtureRequest) -> bool:
    return request.param
