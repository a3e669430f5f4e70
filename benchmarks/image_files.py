"""Decoding and preprocessing of public test images, against Pillow's full decoding.

`python -m benchmarks.image_files FOLDER`: all files of our formats below FOLDER, such as `Tests/images` of Pillow's
source distribution. Prints how many were answered, how many refused and why, and the largest difference in grey levels
of the resized image (224 x 224, bilinear) to `Image.open(...).convert("RGB").resize(...)`.
"""

import re
import sys
import warnings
from collections import Counter
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from lifelong_core.errors import LifelongError
from lifelong_core.images import FORMATS, model_input
from lifelong_core.preprocessing import Preprocessing

TARGET = Preprocessing.model_validate({"resize": {"height": 224, "width": 224}})


def expected(data: bytes) -> np.ndarray | str:
    """The same input by Pillow alone; or the error of Pillow."""
    try:
        with Image.open(BytesIO(data), formats=FORMATS) as image:
            upright = (
                ImageOps.exif_transpose(image).convert("RGB").resize((224, 224), Image.Resampling.BILINEAR)
            )
    except Exception as error:  # noqa: BLE001 - many kinds
        return type(error).__name__
    return np.asarray(upright).transpose(2, 0, 1)


def main() -> None:
    """Compare all files, and print the counts."""
    warnings.simplefilter("ignore")
    refused: Counter[str] = Counter()
    differences: list[tuple[float, str]] = []
    for path in sorted(each for each in Path(sys.argv[1]).rglob("*") if each.is_file()):
        data = path.read_bytes()
        try:
            with Image.open(BytesIO(data), formats=FORMATS) as image:
                if image.width * image.height > 50_000_000:  # would fill the memory; refused in any case
                    continue
        except Exception:  # noqa: BLE001 - another format
            continue
        try:
            found = model_input(data, TARGET, maximum_pixels=50_000_000)
        except LifelongError as error:
            reason = re.sub(r"\d{3,}", "N", error.message)
            refused[f"{reason} (Pillow: {'error' if isinstance(expected(data), str) else 'answers'})"] += 1
            continue
        other = expected(data)
        difference = float("inf") if isinstance(other, str) else 255 * abs(found - other / 255).max()
        differences.append((float(difference), path.name))
    print(
        f"{len(differences) + refused.total()} images, {len(differences)} answered, {refused.total()} refused"
    )
    for reason, count in refused.most_common():
        print(f"  {count:4} {reason}")
    print("equal:", sum(value < 0.01 for value, _ in differences))
    for value, name in sorted(differences, reverse=True):
        if value >= 0.01:
            print(f"  {value:8.2f} {name}")


if __name__ == "__main__":
    main()
