"""Small tasks that a small network learns within seconds: the place of a bright square is the class."""

from pathlib import Path

import numpy as np
from PIL import Image

from lifelong_core.develop.features.sources.entry import ImageSource
from lifelong_core.develop.features.sources.opening import open_images
from lifelong_core.develop.training.recipe import Optimisation, Recipe

EDGE = 32
CORNERS = ((4, 4), (20, 20), (4, 20), (20, 4))


def draw(folder: Path, counts: dict[str, int], *, seed: int = 0) -> ImageSource:
    """Grey images, one sub-folder for each class; classes differ by the corner of the square."""
    rng = np.random.default_rng(seed)
    for number, (name, count) in enumerate(counts.items()):
        (folder / name).mkdir(parents=True)
        top, left = CORNERS[number]
        for image in range(count):
            pixels = rng.integers(0, 120, size=(EDGE, EDGE))
            pixels[top : top + 8, left : left + 8] += 130
            Image.fromarray(pixels.astype(np.uint8)).save(folder / name / f"{image}.png")
    return open_images(folder)


def recipe(epochs: int = 3, *, seed: int = 0, architecture: str = "test_resnet", **changes: object) -> Recipe:
    """A recipe for these images; changes are fields of Recipe, or of its optimisation."""
    own = {name: changes.pop(name) for name in list(changes) if name in Optimisation.model_fields}
    given = {"epochs": epochs, "batch_size": 16, "learning_rate": 3e-3, **own}
    return Recipe.model_validate(
        {
            "architecture": architecture,
            "initial_weights": "random",
            "colour": "grey",
            "image_size": EDGE,
            # A flip would change the class.
            "augmentation": {"sub_policies": []},
            "optimisation": given,
            "seed": seed,
            **changes,
        }
    )
