"""Decoders of JPEGs, on the way from bytes to the input of a model: tensor, processor time, and time in a busy process.

`python -m benchmarks.decoding [--json] [--quick]`. Needs the extra `develop` and opencv-python-headless. All arms make
the evaluation input of an ImageNet model of timm, from an image of its own size or a larger one (shortest edge 235,
bicubic, crop 224):

- `ours`: `lifelong_core.images.model_input`, as in the service;
- `timm`: Pillow decodes, timm's evaluation transform;
- `pillow`: Pillow decodes, then our steps;
- `opencv`: OpenCV decodes, resizes (bicubic; it does not smooth) and normalises;
- `opencv area`: likewise, but resizes by areas, OpenCV's way to reduce an image.

The difference is the largest absolute one of the tensor to `timm`'s. The busy time is that of one image while another
thread computes in Python, as the event loop of a worker does: each part that needs the interpreter waits for it.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from benchmarks.gpu_graphs import jpeg
from benchmarks.machine import describe
from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.images import model_input, preprocess
from lifelong_core.values.preprocessing import Preprocessing

Arm = Callable[[bytes], NDArray[np.float32]]
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
ROUNDS: Final = 5
"""The arms take turns; the median of their rounds counts."""


@dataclass(frozen=True)
class Case:
    """Edges of the image, of the resized image and of the input, in pixels."""

    image: int
    resized: int = 235
    cropped: int = 224

    @property
    def preprocessing(self) -> Preprocessing:
        """As our document."""
        resize = {"mode": "shortest_edge", "height": self.resized, "width": self.resized}
        return Preprocessing.model_validate(
            {
                "resize": {**resize, "interpolation": "bicubic"},
                "centre_crop": {"height": self.cropped, "width": self.cropped},
                "mean": MEAN,
                "standard_deviation": DEVIATION,
            }
        )


CASES: Final = (Case(64, 64, 64), Case(224, 224, 224), Case(512), Case(1024), Case(2000))


def arms(case: Case) -> Mapping[str, Arm]:
    """All ways from bytes to the input (3, edge, edge)."""
    try:
        import cv2
    except ImportError:
        sys.exit("OpenCV is not installed: pip install opencv-python-headless")
    declare_missing_operators()
    from timm.data import create_transform

    cv2.setNumThreads(1)
    transform: Any = create_transform(
        (3, case.cropped, case.cropped),
        crop_pct=case.cropped / case.resized,
        interpolation="bicubic",
        mean=MEAN,
        std=DEVIATION,
        is_training=False,
    )

    mean = np.array(MEAN, np.float32)[:, None, None]
    deviation = np.array(DEVIATION, np.float32)[:, None, None]
    first = round((case.resized - case.cropped) / 2)
    kept = slice(first, first + case.cropped)
    preprocessing = case.preprocessing

    def opencv(data: bytes, interpolation: int) -> NDArray[np.float32]:
        decoded: Any = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
        resized: Any = cv2.resize(decoded, (case.resized, case.resized), interpolation=interpolation)
        # As ours: one copy to floats, then arithmetic in place.
        pixels = np.array(resized[kept, kept].transpose(2, 0, 1), np.float32, order="C")
        pixels /= np.float32(255)
        pixels -= mean
        pixels /= deviation
        return pixels

    return {
        "ours": lambda data: model_input(data, preprocessing, maximum_pixels=10**8),
        "timm": lambda data: transform(_opened(data)).numpy(),
        "pillow": lambda data: preprocess(_opened(data), preprocessing),
        "opencv": lambda data: opencv(data, cv2.INTER_CUBIC),
        "opencv area": lambda data: opencv(data, cv2.INTER_AREA),
    }


def _opened(data: bytes) -> Image.Image:
    image = Image.open(BytesIO(data))
    image.load()
    return image


def measure(case: Case, seconds: float) -> list[dict[str, Any]]:
    """One row for each arm on a square JPEG (quality 90)."""
    data = jpeg(case.image, seed=0)
    ways = arms(case)
    expected = ways["timm"](data)
    times: dict[str, list[float]] = {name: [] for name in ways}
    busy: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            times[name].append(_seconds(lambda way=way: way(data), seconds / ROUNDS))
            busy[name].append(_busy_seconds(lambda way=way: way(data), seconds / ROUNDS))
    return [
        {
            "edge": case.image,
            "input": case.cropped,
            "bytes": len(data),
            "arm": name,
            "ms": 1e3 * float(np.median(times[name])),
            "ratio": float(np.median(times[name]) / np.median(times["ours"])),
            "difference": float(np.abs(way(data) - expected).max()),
            "busy_ms": 1e3 * float(np.median(busy[name])),
        }
        for name, way in ways.items()
    ]


def _seconds(work: Callable[[], object], seconds: float) -> float:
    """Processor time of one call."""
    work()
    calls, ends = 0, time.perf_counter() + seconds
    began = time.process_time()
    while time.perf_counter() < ends:
        work()
        calls += 1
    return (time.process_time() - began) / max(calls, 1)


def _busy_seconds(work: Callable[[], object], seconds: float) -> float:
    """Time of one call while another thread computes."""
    stopped = threading.Event()

    def compute() -> None:
        while not stopped.is_set():
            pass

    thread = threading.Thread(target=compute)
    thread.start()
    calls, began = 0, time.perf_counter()
    try:
        while time.perf_counter() < began + seconds:
            work()
            calls += 1
        return (time.perf_counter() - began) / calls
    finally:
        stopped.set()
        thread.join()


def main() -> None:
    """Measure, and print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="two sizes, a second each")
    given = parser.parse_args()
    cases, seconds = (CASES[:2], 1.0) if given.quick else (CASES, 5.0)
    rows = [row for case in cases for row in measure(case, seconds)]
    machine = describe("pillow", "simplejpeg", "opencv-python-headless", "timm", "numpy")
    if given.json:
        print(json.dumps({"machine": machine, "rows": rows}, indent=2))
        return
    print(machine)
    print(
        "| edge | input | arm | ms | times ours | difference to timm | ms, busy |\n|---|---|---|---|---|---|---|"
    )
    for row in rows:
        print(
            f"| {row['edge']} | {row['input']} | {row['arm']} | {row['ms']:.2f} | {row['ratio']:.2f} | "
            f"{row['difference']:.2g} | {row['busy_ms']:.1f} |"
        )


if __name__ == "__main__":
    main()
