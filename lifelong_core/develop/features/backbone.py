"""A timm model without its classifier, with weights whose digest is known."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# The types of torch and timm are incomplete.

import hashlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from lifelong_core.values.validation_errors import suggest

declare_missing_operators()
import timm  # noqa: E402 - needs torchvision, see above
import timm.models  # noqa: E402

_COUNTER = "num_batches_tracked"
"""of batch normalisation; it does not change features, and some files lack it"""


class Backbone:
    """Computes the features of images.

    Args:
        architecture: name of the timm model.
        module: the model without classifier.
        device: where it runs.
    """

    def __init__(self, architecture: str, module: nn.Module, device: torch.device) -> None:
        self.architecture = architecture
        self.module = module.to(device).eval()
        self.device = device
        self.weights = weights_digest(module.state_dict())

    @property
    def features(self) -> int:
        """Number of features, m."""
        return int(getattr(self.module, "num_features"))  # noqa: B009 - timm's models have it, torch's do not

    def extract(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """Features (n, m) of preprocessed images (n, C, H, W)."""
        with torch.inference_mode():
            found = self.module(torch.from_numpy(images).to(self.device))
        return found.float().cpu().numpy()

    def check(self, reference: ExtractorReference) -> None:
        """Make sure that this is the backbone that the reference names.

        Raises:
            InvalidInputError: another architecture, or other weights.
        """
        document = reference.document
        if self.architecture != document.architecture or self.features != reference.features:
            raise InvalidInputError(
                f"the extractor has {document.architecture} with {reference.features} features, "
                f"the backbone is {self.architecture} with {self.features}.",
                field="weights",
            )
        if self.weights != document.weights:
            raise InvalidInputError(
                f"these weights have the digest {self.weights[:12]}, the extractor was made with "
                f"{document.weights[:12]}.",
                field="weights",
                hint="Get the weights file from the institution that shared the extractor.",
            )


def load_backbone(
    architecture: str,
    weights: Path | None = None,
    *,
    pretrained: bool = False,
    channels: int = 3,
    device: str | None = None,
) -> Backbone:
    """Return a timm model without classifier.

    Args:
        architecture: name in timm, such as resnet34.
        weights: file of the weights, safetensors or a state dictionary that torch saved; nothing in it is executed.
            Weights of the classifier are ignored.
        pretrained: instead, take timm's weights from the hub or its cache.
        channels: of the images.
        device: of torch, such as cpu or cuda:0; None: a GPU if there is one.

    Raises:
        InvalidInputError: unknown architecture, or a file that lacks weights or has others.
        ConfigurationError: the hub cannot be reached.
    """
    if (weights is None) != pretrained:
        raise InvalidInputError("expected either a file of weights or pretrained.", field="weights")
    if weights is not None and not weights.is_file():
        raise InvalidInputError(f"there is no file {weights}.", field="weights")
    if not timm.is_model(architecture):
        raise InvalidInputError(
            f"timm has no model {architecture[:100]!r}.",
            field="architecture",
            hint=suggest(architecture, timm.list_models()) or "Look at timm.list_models().",
        )
    module = _created(architecture, channels) if weights is not None else _downloaded(architecture, channels)
    if weights is not None:
        _load_weights(module, weights)
    return Backbone(architecture, module, choose_device(device))


def weights_digest(state: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 (hex) over names, types, shapes and values of the tensors, in order of their names."""
    digest = hashlib.sha256()
    for name in sorted(state):
        if name.endswith(_COUNTER):
            continue
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def choose_device(name: str | None, *, hint: str = "Give cpu, or leave it out.") -> torch.device:
    """The device of this name; None: a GPU if torch can use one, else the CPU.

    Args:
        name: of torch, such as cpu or cuda:0.
        hint: of the error: where the name comes from.

    Raises:
        InvalidInputError: torch cannot compute there.
    """
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidInputError(f"torch cannot compute on {name}.", field="device", hint=hint) from error
    return device


@contextmanager
def limit_threads(threads: int | None) -> Generator[None]:
    """Let torch compute with so many threads; None: not more than there are cores for this process."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads or min(before, usable_cores()))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _created(architecture: str, channels: int, *, pretrained: bool = False) -> nn.Module:
    return timm.create_model(architecture, pretrained=pretrained, num_classes=0, in_chans=channels)


def _downloaded(architecture: str, channels: int) -> nn.Module:
    try:
        return _created(architecture, channels, pretrained=True)
    except Exception as error:  # hub clients raise errors of many libraries
        raise ConfigurationError(
            f"the weights of {architecture} cannot be had from the hub ({type(error).__name__}).",
            field="pretrained",
            hint="Get the file of the weights elsewhere, and give it as weights.",
        ) from error


def _load_weights(module: nn.Module, file: Path) -> None:
    """Fill the model.

    Raises:
        InvalidInputError: the file is none, or its tensors are not those of the model.
    """
    try:
        state: dict[str, Any] = timm.models.load_state_dict(str(file), weights_only=True)
        wanted = module.state_dict()
        missing = [name for name in wanted if name not in state and not name.endswith(_COUNTER)]
    except Exception as error:  # pickle, zip and safetensors readers raise many kinds of errors
        raise InvalidInputError(
            f"{file} holds no weights that can be loaded safely ({type(error).__name__}).",
            field="weights",
            hint="Give a safetensors file, or a state dictionary that torch.save wrote.",
        ) from error
    classifiers = _classifiers(module)
    others = [name for name in state if name not in wanted and name.split(".")[0] not in classifiers]
    wrong = [name for name, tensor in wanted.items() if name in state and state[name].shape != tensor.shape]
    for problem, names in (
        ("lacks", missing),
        ("has further tensors:", others),
        ("has other shapes of", wrong),
    ):
        if names:
            raise InvalidInputError(
                f"{file} {problem} {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}.",
                field="weights",
                hint="Do these weights belong to this architecture?",
            )
    module.load_state_dict({name: state[name] for name in wanted if name in state}, strict=False)


def _classifiers(module: nn.Module) -> set[str]:
    """Names of the parts of the model that are left out."""
    found = getattr(module, "pretrained_cfg", {}).get("classifier", "fc")
    names = (found,) if isinstance(found, str) else tuple(found or ())
    return {name.split(".")[0] for name in names}
