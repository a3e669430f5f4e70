"""Decoding and preprocessing of public test images, against Pillow's full decoding and torchvision's transforms.

`python -m benchmarks.image_files FOLDER...`: all files of our formats below the folders, such as `Tests/images` of the
source distribution of Pillow. Equal files count once. Prints how many were answered, how many refused and why, and the
largest difference in grey levels of the resized image (224 x 224, bilinear) to Pillow's
`Image.open(...).convert("RGB")` with torchvision's `Resize` and `ToTensor`.
"""

import hashlib
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageOps

from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.images import FORMATS, model_input
from lifelong_core.values.errors import LifelongError
from lifelong_core.values.preprocessing import Preprocessing

MAXIMUM_PIXELS = 50_000_000
TARGET = Preprocessing.model_validate({"resize": {"height": 224, "width": 224}})


def expected(data: bytes, transform: Callable[[Image.Image], torch.Tensor]) -> np.ndarray | str:
    """The same input by Pillow and torchvision; or the error of Pillow."""
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except Exception as error:  # noqa: BLE001 - many kinds
        return type(error).__name__
    return transform(upright).numpy()


def main() -> None:
    """Compare all files, and print the counts."""
    warnings.simplefilter("ignore")
    declare_missing_operators()
    transforms = import_module("torchvision.transforms")
    transform = transforms.Compose([transforms.Resize((224, 224)), transforms.ToTensor()])
    refused: Counter[str] = Counter()
    differences: list[tuple[float, str]] = []
    seen: set[bytes] = set()
    paths = [path for folder in sys.argv[1:] for path in Path(folder).rglob("*") if path.is_file()]
    for path in sorted(paths):
        data = path.read_bytes()
        digest = hashlib.sha256(data).digest()
        try:
            with Image.open(BytesIO(data), formats=FORMATS) as image:
                # The largest would fill the memory of this comparison.
                if digest in seen or image.width * image.height > MAXIMUM_PIXELS:
                    continue
                kind = f"{image.format} {image.mode}"
        except Exception:  # noqa: BLE001 - another format
            continue
        seen.add(digest)
        other = expected(data, transform)
        try:
            found = model_input(data, TARGET, maximum_pixels=MAXIMUM_PIXELS)
        except LifelongError as error:
            reason = re.sub(r"\d{3,}", "N", error.message)
            refused[f"{reason} (Pillow: {'error' if isinstance(other, str) else 'answers'})"] += 1
            continue
        difference = float("inf") if isinstance(other, str) else 255 * abs(found - other).max()
        differences.append((float(difference), f"{kind} {path.name}"))
    print(f"{len(seen)} images, {len(differences)} answered, {refused.total()} refused")
    for reason, count in refused.most_common():
        print(f"  {count:4} {reason}")
    print("equal:", sum(value == 0 for value, _ in differences))
    for value, name in sorted(differences, reverse=True):
        if value > 0:
            print(f"  {value:8.5f} {name}")


if __name__ == "__main__":
    main()
