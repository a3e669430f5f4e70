"""A head that scores each patch of an image on its own, for timm backbones: its map says where the model looks."""
# pyright: reportUnknownMemberType=false
# The types of torch are incomplete.

import math
from typing import Any, cast

import torch
from torch import Tensor, nn

from lifelong_core.develop.localization.pooling_modules import POOLINGS, PoolingName
from lifelong_core.values.errors import InvalidInputError


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
