"""Where and how exactly a training computes."""
# pyright: reportUnknownMemberType=false

from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lifelong_core.develop.features.backbone import choose_device
from lifelong_core.values.preprocessing import Preprocessing


@dataclass(frozen=True, eq=False)
class Computing:
    """Device and precision of a training.

    Attributes:
        device: of torch.
        mixed: whether the forward pass computes in bfloat16 where that is safe.
        mean: (C, 1, 1), of the images on the scale 0..255.
        scale: (C, 1, 1), standard deviation on the same scale.
    """

    device: torch.device
    mixed: bool
    mean: torch.Tensor
    scale: torch.Tensor

    def inputs(self, images: torch.Tensor) -> torch.Tensor:
        """Inputs of the model on the device, from uint8 images (n, C, H, W)."""
        moved = images.to(self.device, non_blocking=True).float()
        moved = (moved / 255 - self.mean) / self.scale
        return moved.contiguous(memory_format=torch.channels_last) if self.is_gpu else moved

    def precision(self) -> AbstractContextManager[object]:
        """Context of the forward pass."""
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.mixed)

    @property
    def is_gpu(self) -> bool:
        """Whether it is no CPU."""
        return self.device.type != "cpu"

    def logits(self, module: torch.nn.Module, inputs: NDArray[np.float32]) -> torch.Tensor:
        """Logits (n, classes) of a batch of preprocessed images, on the CPU in float32."""
        with torch.inference_mode(), self.precision():
            return module(torch.from_numpy(inputs).to(self.device)).float().cpu()


def training_device(name: str) -> torch.device:
    """The device of an entry of `LIFELONG_TRAINING_DEVICES`; `auto` is a GPU if torch can use one, else the CPU.

    Raises:
        InvalidInputError: torch cannot compute there.
    """
    return choose_device(
        None if name == "auto" else name,
        hint="Name another device in LIFELONG_TRAINING_DEVICES: cpu, cuda or cuda:1.",
    )


def compute_on(device: torch.device, preprocessing: Preprocessing, *, mixed_precision: bool) -> Computing:
    """How a training with this preprocessing computes on a device."""
    mean, scale = (
        torch.tensor(values, dtype=torch.float32, device=device).view(-1, 1, 1)
        for values in (preprocessing.mean, preprocessing.standard_deviation)
    )
    return Computing(device, mixed_precision and computes_in_bfloat16(device), mean, scale)


def computes_in_bfloat16(device: torch.device) -> bool:
    """Whether it is a GPU that computes in bfloat16 itself; those that only emulate it are slower than in float32."""
    if device.type != "cuda":
        return False
    with torch.cuda.device(device):  # torch tells it of the current GPU only
        return torch.cuda.is_bf16_supported(including_emulation=False)


def describe_device(device: torch.device) -> str:
    """The device in words."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)
