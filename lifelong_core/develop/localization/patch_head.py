"""A head that scores each patch of an image on its own, for timm backbones: its map says where the model looks."""
# pyright: reportUnknownMemberType=false
# The types of torch are incomplete.

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, cast

import torch
from torch import Tensor, nn

from lifelong_core.develop.localization.pooling import SHARPNESS
from lifelong_core.values.errors import InvalidInputError

PoolingName: TypeAlias = Literal["max", "mean", "log_sum_exp", "noisy_or"]


_FAR = 20.0
"""log(softplus(s)) is s - exp(s) / 2 to double precision for s below its negative"""
_TINY = -10.0
"""log of an x for which log(expm1(x)) is log(x) + x / 2 + x^2 / 24 to double precision"""


class PatchClassifier(nn.Module):
    """A backbone, one linear score for each class and patch, and a pooling of patches (Romanova, 2020, section II-B).

    Patches are the positions of the backbone's last features: the cells of a feature map of a CNN, the tokens of a
    transformer without its class tokens. The logits are those of "the image shows the class", one class at a time.

    Args:
        backbone: a timm model with `forward_features`, such as `timm.create_model(name, num_classes=0)`.
        classes: number of classes, C.
        channels: of the images.
        height: of the images, in pixels.
        width: likewise.
        pooling: name of the pooling.

    Attributes:
        grid: rows and columns of patches.

    Raises:
        InvalidInputError: the features of the backbone are no grid of patches.
    """

    def __init__(
        self,
        backbone: nn.Module,
        classes: int,
        *,
        channels: int = 3,
        height: int,
        width: int,
        pooling: PoolingName = "log_sum_exp",
    ) -> None:
        super().__init__()
        self.backbone = backbone
        features = self._probe(channels, height, width)
        self.grid = int(features.shape[1]), int(features.shape[2])
        self.score = nn.Linear(int(features.shape[3]), classes)
        if pooling == "noisy_or":
            # Else many patches of probability 1/2 begin with images of probability 1 and no gradient.
            nn.init.constant_(self.score.bias, -math.log(math.prod(self.grid)))
        self.pooling = POOLINGS[pooling]()

    def patch_logits(self, images: Tensor) -> Tensor:
        """Logits of the patches, shape (N, C, rows, columns), of images (N, channels, height, width)."""
        return self.score(self._features(images)).permute(0, 3, 1, 2)

    def forward(self, images: Tensor, marked: Tensor | None = None) -> Tensor:
        """Logits of the images, shape (N, C).

        Args:
            images: shape (N, channels, height, width).
            marked: shape (N, C, rows, columns), booleans: patches in which a finding of the class is known to lie.
        """
        logits = self.patch_logits(images).flatten(2)
        return self.pooling(logits, None if marked is None else marked.flatten(2))

    def _probe(self, channels: int, height: int, width: int) -> Tensor:
        """The features of a black image."""
        parameter = next(self.backbone.parameters(), torch.zeros(0))
        black = torch.zeros(1, channels, height, width, device=parameter.device, dtype=parameter.dtype)
        was_training = self.backbone.training
        self.backbone.eval()
        try:
            with torch.no_grad():
                return self._features(black)
        finally:
            self.backbone.train(was_training)

    def _features(self, images: Tensor) -> Tensor:
        """Features of the patches, shape (N, rows, columns, features)."""
        backbone = cast("Any", self.backbone)
        found: Tensor = backbone.forward_features(images)
        if found.ndim == 3:
            tokens = found[:, int(getattr(backbone, "num_prefix_tokens", 0)) :]
            rows, columns = self._token_grid(tokens.shape[1])
            return tokens.reshape(tokens.shape[0], rows, columns, tokens.shape[2])
        if found.ndim != 4:
            raise _no_grid(found)
        is_channels_last = str(getattr(backbone, "output_fmt", "NCHW")) == "NHWC"
        return found if is_channels_last else found.permute(0, 2, 3, 1)

    def _token_grid(self, tokens: int) -> tuple[int, int]:
        known = getattr(getattr(self.backbone, "patch_embed", None), "grid_size", None)
        if known is not None and math.prod(known) == tokens:
            return int(known[0]), int(known[1])
        edge = math.isqrt(tokens)
        if edge * edge != tokens:
            raise InvalidInputError(
                f"{tokens} tokens are no square grid of patches.",
                field="backbone",
                hint="Choose a backbone whose tokens are the patches of the image.",
            )
        return edge, edge


def _no_grid(found: Tensor) -> InvalidInputError:
    return InvalidInputError(
        f"features of shape {tuple(found.shape)} are no grid of patches.",
        field="backbone",
        hint="Choose a CNN with feature maps, or a transformer with one token for each patch.",
    )


class MaxPooling(nn.Module):
    """The largest score (eq. 1); of an image with marks, the largest among the marked patches."""

    def forward(self, logits: Tensor, marked: Tensor | None = None) -> Tensor:
        """Logits of images, shape (...), from those of patches, shape (..., N).

        Args:
            logits: of the patches.
            marked: shape (..., N), booleans; an image without a mark counts as unmarked.
        """
        if marked is not None:
            logits = logits.masked_fill(~marked & marked.any(-1, keepdim=True), -torch.inf)
        return logits.amax(-1)


class MeanPooling(nn.Module):
    """The mean probability (eq. 2); of an image with marks, that of y inside them and of 1 - y outside."""

    def forward(self, logits: Tensor, marked: Tensor | None = None) -> Tensor:
        """Logits of images, shape (...); arguments as for `MaxPooling`."""
        signed = _signed(logits, marked)
        return _log_mean(signed) - _log_mean(-signed)


class LogSumExpPooling(nn.Module):
    """A smooth maximum of probabilities (eq. 4); beside marks, of y inside and of 1 - y outside.

    Args:
        sharpness: r, positive.

    Raises:
        InvalidInputError: the sharpness is not positive.
    """

    def __init__(self, sharpness: float = SHARPNESS) -> None:
        super().__init__()
        if not 0 < sharpness < float("inf"):
            raise InvalidInputError(f"expected a positive number, got {sharpness}.", field="sharpness")
        self.sharpness = sharpness

    def forward(self, logits: Tensor, marked: Tensor | None = None) -> Tensor:
        """Logits of images, shape (...); arguments as for `MaxPooling`."""
        signed = _signed(logits, marked)
        return self._log_maximum(signed) - self._log_minimum(-signed)

    def _log_maximum(self, logits: Tensor) -> Tensor:
        """The logarithm of the smooth maximum of the probabilities."""
        largest = logits.amax(-1, keepdim=True)
        top = largest.sigmoid()
        shortfall = torch.expm1(self.sharpness * (logits.sigmoid() - top)).mean(-1)
        # Relative to the largest, small probabilities keep their digits.
        least = torch.finfo(top.dtype).eps / self.sharpness
        share = torch.log1p(shortfall) / (self.sharpness * top[..., 0].clamp_min(least))
        smooth = _log_sigmoid(largest[..., 0]) + torch.log1p(share)
        return torch.where(top[..., 0] < least, _log_mean(logits), smooth)

    def _log_minimum(self, logits: Tensor) -> Tensor:
        """The logarithm of the smooth minimum of the probabilities, -log(mean(exp(-r y))) / r."""
        smallest = logits.amin(-1)
        probabilities = logits.sigmoid()
        above = probabilities - probabilities.amin(-1, keepdim=True)
        excess = -torch.log1p(torch.expm1(-self.sharpness * above).mean(-1)) / self.sharpness
        # The smallest may be too small for a number beside the others.
        smooth = torch.logaddexp(
            _log_sigmoid(smallest), excess.clamp_min(torch.finfo(excess.dtype).tiny).log()
        )
        least = torch.finfo(excess.dtype).eps / self.sharpness
        return torch.where(probabilities.amax(-1) < least, _log_mean(logits), smooth)


class NoisyOrPooling(nn.Module):
    """Some patch is positive, if patches are independent (eq. 5); beside marks, just the marked ones are (eq. 23)."""

    def forward(self, logits: Tensor, marked: Tensor | None = None) -> Tensor:
        """Logits of images, shape (...); arguments as for `MaxPooling`."""
        # log prod(1 - y) = -sum softplus(s), so that the logit of 1 - prod(1 - y) is log(expm1(sum softplus(s))).
        any_positive = _log_expm1_of_sum(logits)
        if marked is None:
            return any_positive
        signed = torch.where(marked, logits, -logits)
        return torch.where(marked.any(-1), -_log_expm1_of_sum(-signed), any_positive)


POOLINGS: Mapping[PoolingName, type[nn.Module]] = MappingProxyType(
    {
        "max": MaxPooling,
        "mean": MeanPooling,
        "log_sum_exp": LogSumExpPooling,
        "noisy_or": NoisyOrPooling,
    }
)


def _signed(logits: Tensor, marked: Tensor | None) -> Tensor:
    """Logits of how well each patch agrees with the marks of its image, if it has any."""
    if marked is None:
        return logits
    return torch.where(marked | ~marked.any(-1, keepdim=True), logits, -logits)


def _log_sigmoid(logits: Tensor) -> Tensor:
    return -torch.logaddexp(-logits, torch.zeros_like(logits))


def _log_mean(logits: Tensor) -> Tensor:
    """The logarithm of the mean probability: the smooth maximum and minimum of tiny ones."""
    return _log_sigmoid(logits).logsumexp(-1) - math.log(logits.shape[-1])


def _log_expm1_of_sum(logits: Tensor) -> Tensor:
    """log(expm1(x)) of x = sum(softplus(s)) over the last axis, also where x is too small for a number."""
    near = logits.clamp_min(-_FAR)
    log_softplus = torch.where(
        logits < -_FAR,
        logits - logits.clamp_max(-_FAR).exp() / 2,
        torch.logaddexp(near, torch.zeros_like(near)).log(),
    )
    log_sum = log_softplus.logsumexp(-1)
    # Each branch gets arguments for which its gradient is finite, even where the other one is taken.
    small, large = log_sum.clamp_max(_TINY).exp(), log_sum.clamp_min(_TINY).exp()
    return torch.where(
        log_sum < _TINY, log_sum + small / 2 + small**2 / 24, large + torch.log(-torch.expm1(-large))
    )
