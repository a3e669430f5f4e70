"""Device and precision of a training, and the timm model of a recipe."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The types of torch and timm are incomplete.

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.develop.features.backbone import choose_device, load_backbone, weights_digest
from lifelong_core.develop.training.recipe import Recipe
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from lifelong_core.values.preprocessing import Preprocessing
from lifelong_core.values.validation_errors import suggest

declare_missing_operators()
import timm  # noqa: E402 - needs torchvision, see above

_SUFFIXES = (".safetensors", ".pth")


@dataclass(frozen=True, eq=False)
class InitialWeights:
    """Weights of a backbone for RGB images, before training."""

    tensors: dict[str, torch.Tensor]
    digest: str


class CoTrainedClassifier(nn.Module):
    """A classifier whose backbone has a second head, for the source task (hard parameter sharing, Def. 5.12).

    Args:
        target: a timm classifier; it shares its weights with this module.
        source_classes: number of classes of the source task.
    """

    def __init__(self, target: nn.Module, source_classes: int) -> None:
        super().__init__()
        self.target = target
        self.source_head = nn.Linear(int(cast(Any, target).head_hidden_size), source_classes)

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits of both heads for all images, (n, classes) and (n, source_classes)."""
        target = cast(Any, self.target)
        features = target.forward_head(target.forward_features(images), pre_logits=True)
        return target.get_classifier()(features), self.source_head(features)


def add_source_head(target: nn.Module, source_classes: int, image: torch.Tensor) -> CoTrainedClassifier:
    """Give a classifier a second head.

    Args:
        target: a timm classifier.
        source_classes: number of classes of the source task.
        image: one input (1, C, H, W), to see that the features before the classifier are what it classifies.

    Raises:
        InvalidInputError: the architecture has no features that a second linear head could use.
    """
    try:
        module = CoTrainedClassifier(target, source_classes).eval()
        with torch.inference_mode():
            fits = torch.allclose(module(image)[0], target(image), atol=1e-5)
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise _unsuited(f"co-training ({type(error).__name__})") from error
    if not fits:
        raise _unsuited("co-training: its classifier needs more than the pooled features")
    return module


def read_initial_weights(recipe: Recipe, folder: Path | None) -> InitialWeights | None:
    """The weights with which a training of this recipe starts; None: random ones.

    Args:
        recipe: names the architecture.
        folder: of files `{architecture}.safetensors` or `.pth`; without such a file they come from the hub.

    Raises:
        InvalidInputError: unknown architecture, or a file that is not of it.
        ConfigurationError: there is no file, and the hub cannot be reached.
    """
    if recipe.initial_weights == "random":
        return None
    files = [] if folder is None else [folder / f"{recipe.architecture}{suffix}" for suffix in _SUFFIXES]
    file = next((one for one in files if one.is_file()), None)
    try:
        backbone = load_backbone(recipe.architecture, file, pretrained=file is None, device="cpu")
    except ConfigurationError as error:
        raise ConfigurationError(
            error.message,
            field="LIFELONG_TRAINING_WEIGHTS",
            hint=f"Put {recipe.architecture}.safetensors into the folder that LIFELONG_TRAINING_WEIGHTS names, "
            "or train with initial_weights random.",
        ) from error
    return InitialWeights(backbone.module.state_dict(), backbone.weights)


def create_classifier(
    recipe: Recipe, classes: int, *, size: tuple[int, int], weights: InitialWeights | None
) -> nn.Module:
    """A timm model with a new classifier; torch's generator decides what is random.

    Args:
        recipe: names architecture and colours.
        classes: number of logits.
        size: height and width of its images.
        weights: of the backbone; None: random ones.

    Raises:
        InvalidInputError: unknown architecture, or one that cannot take images of this size.
    """
    if not timm.is_model(recipe.architecture):
        hint = suggest(recipe.architecture, timm.list_models()) or "Look at timm.list_models()."
        raise InvalidInputError(
            f"timm has no model {recipe.architecture!r}.", field="architecture", hint=hint
        )
    channels = 1 if recipe.colour == "grey" else 3
    options: dict[str, Any] = {"num_classes": classes, "in_chans": channels}
    if (config := timm.get_pretrained_cfg(recipe.architecture)) is not None and config.fixed_input_size:
        options["img_size"] = size
    if weights is not None:
        # timm adapts the first layer to the channels, and position embeddings to the size.
        options |= {
            "pretrained": True,
            "pretrained_cfg_overlay": {"state_dict": dict(weights.tensors), "num_classes": 0, "source": ""},
        }
    try:
        module = timm.create_model(recipe.architecture, **options)
        module.eval()
        with torch.inference_mode():
            logits = module(torch.zeros(2, channels, *size))
    except (RuntimeError, ValueError, TypeError, AssertionError, IndexError) as error:
        raise _unsuited(f"images of {size[0]} x {size[1]} pixels ({type(error).__name__})") from error
    if not isinstance(logits, torch.Tensor) or logits.shape != (2, classes):
        raise _unsuited("classification: it does not give one logit for each class")
    return module


def replace_classifier(module: nn.Module, classes: int) -> None:
    """Give the model a new, random classifier: the second phase of pretraining (Def. 5.10) starts with it."""
    cast(Any, module).reset_classifier(classes)


def load_weights(module: nn.Module, weights: Mapping[str, torch.Tensor]) -> None:
    """Give the model other weights; it is in training mode then.

    In evaluation mode some models of timm (LeViT, TinyViT, EfficientFormer) keep attention biases that they computed
    from their weights, and go on with these after other weights were loaded; training mode drops them.
    """
    module.load_state_dict(weights)
    module.train()


def digest_of(module: nn.Module) -> str:
    """Digest of the tensors of a model."""
    return weights_digest(module.state_dict())


def _unsuited(purpose: str) -> InvalidInputError:
    return InvalidInputError(
        f"the architecture is not suited for {purpose}.",
        field="architecture",
        hint="Choose another image_size, or another architecture.",
    )


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
