"""Longer time limits: the machine may be busy while tests run."""

import pytest

from lifelong_service.decoding import process


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "PATIENCE_SECONDS", 60)
