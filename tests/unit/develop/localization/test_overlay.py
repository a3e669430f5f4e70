"""Overlays: what is tinted and outlined, and how large the files are."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from lifelong_core.develop.localization.overlay import EDGE, overlay_png


def opened(image, relative, **more):
    data = overlay_png(image, relative, **more)
    assert data.startswith(b"\x89PNG")
    return np.asarray(Image.open(BytesIO(data)).convert("RGB")).astype(int)


def test_small_images_are_enlarged_pixel_by_pixel():
    rng = np.random.default_rng(0)
    grey = rng.choice([0, 90, 255], size=(16, 32)).astype(np.uint8)
    found = opened(Image.fromarray(grey), np.zeros((4, 4)))
    assert found.shape == (EDGE // 2, EDGE, 3)
    # Pixels of 5.5: the middle of each has the grey of the image.
    rows, columns = (np.arange(16) * 5.5 + 2).astype(int), (np.arange(32) * 5.5 + 2).astype(int)
    np.testing.assert_array_equal(found[np.ix_(rows, columns)][..., 0], grey)


@pytest.mark.parametrize("level", [0, 128, 255])
def test_the_tint_grows_with_the_map_on_any_background(level):
    ramp = np.linspace(0, 1, 8)[np.newaxis]
    found = opened(Image.new("L", (64, 64), level), ramp, threshold=2)
    middle = found[EDGE // 2, np.arange(8) * EDGE // 8 + EDGE // 16]
    distance = np.linalg.norm(middle - level, axis=1)
    assert distance[0] == 0
    assert (np.diff(distance) > 0).all()
    # Towards red.
    assert ((middle[:, 0] - middle[:, 2])[1:] > 0).all()


def test_positive_patches_are_outlined():
    relative = np.zeros((4, 4))
    relative[1, 2], relative[3, 0] = 0.5, 0.49
    found = opened(Image.new("L", (64, 64), 100), relative, edge=64)
    dark, light = (20, 20, 20), (255, 255, 255)
    assert tuple(found[16, 40]) == tuple(found[31, 40]) in (dark, light)
    assert {tuple(found[16, 40]), tuple(found[17, 40])} == {dark, light}
    assert {tuple(found[24, 32]), tuple(found[24, 33])} == {dark, light}
    outlined = (found == 255).all(axis=2) | (found == 20).all(axis=2)
    assert not outlined[:, :32].any()
    assert outlined.sum() == 60 + 52


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "I;16"])
def test_images_of_all_modes(mode):
    image = (
        Image.fromarray(np.full((20, 30), 30_000, dtype=np.uint16))
        if mode == "I;16"
        else Image.new("L", (30, 20), 120).convert(mode)
    )
    found = opened(image, np.zeros((2, 2)))
    assert found.shape == (117, 176, 3)
    assert found.mean() == pytest.approx(
        {"1": 255 * 0.4, "I;16": 116}.get(mode, 120), abs=60 if mode == "1" else 1
    )


def test_files_are_small_and_equal_for_equal_images():
    rng = np.random.default_rng(1)
    noise = Image.fromarray(rng.integers(0, 256, (1000, 800, 3), dtype=np.uint8))
    relative = rng.random((8, 8))
    found = overlay_png(noise, relative)
    assert len(found) < 40_000
    assert found == overlay_png(noise, relative)
