"""Results of pure functions that most tests of store, service, monitor and command line ask for again."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits, PostProcessingHead


@pytest.fixture(scope="session", autouse=True)
def examined_once() -> Iterator[None]:
    """The head and the report of a calibration set are computed once for each set: half of the time of these tests.

    The tests of `lifelong_core.deploy` call the functions themselves.
    """
    from lifelong_core.store.heads import registration

    with pytest.MonkeyPatch.context() as patched:
        for name in ("fit_head", "examine_calibration", "compare_with_promoted", "with_expectation"):
            patched.setattr(registration, name, _remembering(getattr(registration, name)))
        yield


def _remembering(compute: Callable[..., Any]) -> Callable[..., Any]:
    kept: dict[object, Any] = {}

    def remembered(*given: Any, **named: Any) -> Any:
        key = _key((given, named))
        if key not in kept:
            kept[key] = compute(*given, **named)
        return kept[key]

    return remembered


def _key(value: Any) -> object:
    if isinstance(value, LabeledLogits):
        return value.digest
    if isinstance(value, PostProcessingHead):
        return value.to_json()
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if isinstance(value, Mapping):
        return tuple((name, _key(value[name])) for name in sorted(value))
    if isinstance(value, list | tuple):
        return tuple(_key(part) for part in value)
    return value
