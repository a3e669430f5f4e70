"""Pooling of patches as torch modules, for training: `pooling` on logits.

Both sides are logits: of the probability y = sigmoid(s) of each patch, and of the probability of the image. So
`sigmoid(Pooling()(s))` is what `pooling` gives for `sigmoid(s)`, but nothing is rounded to 0 or 1: values and gradients
stay finite for logits of any size. 1 - y is sigmoid(-s): of an image with marks, logits outside change their sign.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from lifelong_core.develop.localization.pooling import SHARPNESS
from lifelong_core.values.errors import InvalidInputError

PoolingName: TypeAlias = Literal["max", "mean", "log_sum_exp", "noisy_or"]

_FAR = 20.0
"""log(softplus(s)) is s - exp(s) / 2 to double precision for s below its negative"""
_TINY = -10.0
"""log of an x for which log(expm1(x)) is log(x) + x / 2 + x^2 / 24 to double precision"""


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
