"""Logits of exported graphs against torch, for timm architectures with random weights: each is right, or refused.

`python -m benchmarks.onnx_parity [--json] [--quick]`. Nothing is downloaded.
"""

import argparse
import json
import time
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import nn

from benchmarks.machine import describe
from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.develop.training.export.exported_model import (
    check_parity,
    export_onnx,
    training_preprocessing,
)
from lifelong_core.develop.training.export.onnx_classifier import OnnxClassifier
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.images import decode, preprocess
from lifelong_core.values.errors import InvalidInputError

EDGE = 64
CLASSES = 5
IMAGES = 8
SEED = 0

ARCHITECTURES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "resnet18": {},
        "mobilenetv3_small_050": {},
        "vit_tiny_patch16_224": {"img_size": EDGE},
        "efficientnet_lite0": {},
        "regnety_002": {},
        "convnext_atto": {},
        "densenet121": {},
        "ghostnet_050": {},
        "swin_tiny_patch4_window7_224": {"img_size": EDGE, "window_size": 2},
        "rexnetr_100": {},
        "edgenext_xx_small": {},
        "mixer_s32_224": {"img_size": EDGE},
        "maxvit_rmlp_pico_rw_256": {"img_size": EDGE},
        "levit_128s": {"img_size": EDGE},
    }
)
"""Names of timm models, and the arguments that make them take images of `EDGE`."""
QUICK = 3
HEADER = """\
| architecture | parameters | graph, MB | seconds | range of logits | largest difference | allowed |
|---|---|---|---|---|---|---|"""

Row = dict[str, Any]


def measure(architecture: str, **arguments: Any) -> Row:
    """Export a model with random weights, and compare its logits with torch's, also from PNG files."""
    module = random_model(architecture, **arguments)
    recipe = Recipe(architecture=architecture, image_size=EDGE)
    preprocessing = training_preprocessing(recipe)
    files = [noise_png(number) for number in range(IMAGES)]
    decoded = [decode(data, maximum_pixels=10**6) for data in files]
    inputs = np.stack([preprocess(image, preprocessing) for image in decoded])
    row: Row = {
        "architecture": architecture,
        "parameters": sum(parameter.numel() for parameter in module.parameters()),
    }
    began = time.perf_counter()
    try:
        graph = export_onnx(module, channels=3, height=EDGE, width=EDGE)
        classifier = OnnxClassifier(graph, preprocessing, threads=1)
        parity = check_parity(
            module, classifier, inputs, [partial(classifier.logits_of_file, data) for data in files]
        )
    except InvalidInputError as error:
        return row | {"outcome": "refused", "reason": error.message}
    seconds = time.perf_counter() - began
    spread = float(np.ptp(classifier.logits(inputs), axis=0).max())
    figures = {"seconds": seconds, "bytes": len(graph), "spread": spread, **parity.model_dump()}
    return row | {"outcome": "right"} | figures


def random_model(architecture: str, **arguments: Any) -> nn.Module:
    """A model whose layers all matter: timm starts some scales and classifiers at 0, and normalisations at mean 0."""
    declare_missing_operators()
    from timm import create_model

    torch.manual_seed(SEED)
    module = create_model(architecture, pretrained=False, num_classes=CLASSES, **arguments)
    for name, values in (*module.named_parameters(), *module.named_buffers()):
        if name.endswith(("running_var", "gamma")) or (name.endswith("weight") and values.ndim == 1):
            values.data.uniform_(0.5, 1.5)
        elif name.endswith(("running_mean", "bias")) or (values.is_floating_point() and not values.any()):
            values.data.normal_(std=0.1)
    return module.eval()


def noise_png(seed: int) -> bytes:
    """A grid of random colours, enlarged and with noise: resizing it shows."""
    rng = np.random.default_rng(seed)
    colours = np.kron(rng.integers(0, 200, (6, 7, 3)), np.ones((14, 14, 1), dtype=np.int64))
    pixels = colours + rng.integers(0, 56, colours.shape)
    file = BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()


def line(row: Row) -> str:
    return f"| {row['architecture']} | {row['parameters'] / 1e6:.1f} M | {_figures(row)} |"


def _figures(row: Row) -> str:
    if row["outcome"] == "refused":
        return f"- | - | - | refused: {row['reason']} | -"
    worst = max(row["largest_difference"], row["largest_difference_through_service"])
    size = f"{row['bytes'] / 1e6:.1f} | {row['seconds']:.0f}"
    return f"{size} | {row['spread']:.2g} | {worst:.1e} | {row['tolerance']:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--quick", action="store_true", help=f"the first {QUICK} architectures")
    chosen = parser.parse_args()
    wanted = list(ARCHITECTURES.items())[: QUICK if chosen.quick else None]
    machine = describe("torch", "timm", "onnxruntime", "onnxscript")
    print(f"{machine['processor']}, {machine['cores']} cores, {EDGE} px, {CLASSES} classes, seed {SEED}")
    print(HEADER)
    rows: list[Row] = []
    for name, arguments in wanted:
        rows.append(measure(name, **arguments))
        print(line(rows[-1]), flush=True)
    if chosen.json:
        print(json.dumps({"machine": machine, "edge": EDGE, "seed": SEED, "rows": rows}))


if __name__ == "__main__":
    main()
