"""Accepted and refused preprocessing documents."""

from typing import Any

import pytest
from pydantic import ValidationError

from lifelong_core.values.preprocessing import Preprocessing


def resized(mode: str, height: int, width: int, crop: tuple[int, int] | None = None) -> dict[str, Any]:
    document: dict[str, Any] = {"resize": {"mode": mode, "height": height, "width": width}}
    if crop:
        document["centre_crop"] = {"height": crop[0], "width": crop[1]}
    return document


def test_the_shortest_edge_is_one_number() -> None:
    Preprocessing.model_validate(resized("shortest_edge", 224, 224))
    with pytest.raises(ValidationError, match="must be equal"):
        Preprocessing.model_validate(resized("shortest_edge", 224, 256))


@pytest.mark.parametrize(
    ("mode", "crop", "fits"),
    [
        ("exact", (224, 224), True),
        ("exact", (224, 225), False),
        ("exact", (225, 224), False),
        ("shortest_edge", (224, 224), True),
        ("shortest_edge", (224, 300), True),
        ("shortest_edge", (225, 225), False),
    ],
)
def test_a_crop_that_fits_no_image_is_refused(mode: str, crop: tuple[int, int], *, fits: bool) -> None:
    document = resized(mode, 224, 224, crop)
    if fits:
        Preprocessing.model_validate(document)
    else:
        with pytest.raises(ValidationError, match="larger than what resize leaves"):
            Preprocessing.model_validate(document)


def test_what_is_left_out_fits_the_colour() -> None:
    grey = Preprocessing.model_validate({"colour": "grey"})
    assert (grey.mean, grey.standard_deviation) == ((0.0,), (1.0,))
    assert grey.keeps_values
    assert Preprocessing.model_validate({"colour": "grey", "mean": [0.5]}).mean == (0.5,)
    assert Preprocessing.model_validate({}).mean == (0.0, 0.0, 0.0)
    assert Preprocessing.model_validate_json('{"colour": "grey"}') == grey
