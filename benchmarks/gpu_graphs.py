"""Graphs of the GPU benchmark: timm architectures with random weights, in float32 and in half precision."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from lifelong_core.values.preprocessing import Preprocessing

CLASSES = 5
FLOAT32, HALF = "float32", "half"
PRECISIONS = (FLOAT32, HALF)


@dataclass(frozen=True)
class Architecture:
    """A timm architecture at one size of images."""

    name: str
    edge: int
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def preprocessing(self) -> Preprocessing:
        """That of ImageNet, at this size."""
        return Preprocessing.model_validate(
            {
                "resize": {"height": self.edge, "width": self.edge, "interpolation": "bilinear"},
                "mean": [0.485, 0.456, 0.406],
                "standard_deviation": [0.229, 0.224, 0.225],
            }
        )

    def files(self, folder: Path) -> dict[str, Path]:
        """The graph in each precision, exported where the folder lacks it."""
        files = {one: folder / f"{self.name}-{self.edge}-{one}.onnx" for one in PRECISIONS}
        if not files[FLOAT32].is_file():
            files[FLOAT32].write_bytes(self._exported())
        if not files[HALF].is_file():
            from lifelong_service.graphs.half_precision import to_half_precision

            files[HALF].write_bytes(to_half_precision(files[FLOAT32].read_bytes()))
        return files

    def _exported(self) -> bytes:
        from benchmarks.onnx_parity import random_model
        from lifelong_core.develop.training.export.exported_model import export_onnx

        module = random_model(self.name, **self.arguments)
        return export_onnx(module, channels=3, height=self.edge, width=self.edge)


FULL = (Architecture("resnet34", 224), Architecture("vit_base_patch16_224", 224))
QUICK = (Architecture("resnet18", 64), Architecture("vit_tiny_patch16_224", 64, {"img_size": 64}))


def jpeg(edge: int, seed: int = 0) -> bytes:
    """A JPEG with coarse and fine structure, as large as photographs of its edge."""
    rng = np.random.default_rng(seed)
    coarse = np.kron(rng.integers(0, 200, (8, 8, 3)), np.ones((edge // 8, edge // 8, 1), dtype=np.int64))
    pixels = coarse + rng.integers(0, 24, coarse.shape)
    file = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()
