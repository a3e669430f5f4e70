"""The patch head on small timm backbones: a CNN, tokens, and features with channels last."""

import numpy as np
import pytest
import torch
from torch import nn

from lifelong_core.develop.evaluation_transforms import declare_missing_operators
from lifelong_core.develop.localization.patch_head import PatchClassifier
from lifelong_core.develop.localization.pooling import noisy_or_pooling
from lifelong_core.values.errors import InvalidInputError

declare_missing_operators()
import timm  # noqa: E402 - needs torchvision, see above

TINY_SWIN = {"img_size": 32, "window_size": 4, "embed_dim": 24, "depths": (1, 1), "num_heads": (2, 2)}
BACKBONES = {
    "cnn": ("test_resnet", {}, 96, (3, 2)),
    "tokens": ("test_vit", {"img_size": (96, 64)}, 96, (6, 4)),
    "channels last": ("swin_tiny_patch4_window7_224", TINY_SWIN, 32, (4, 4)),
}


def backbone(kind):
    name, options, height, grid = BACKBONES[kind]
    torch.manual_seed(0)
    made = timm.create_model(name, pretrained=False, num_classes=0, in_chans=1, **options)
    return made, height, 32 if kind == "channels last" else 64, grid


@pytest.mark.parametrize("kind", list(BACKBONES))
def test_each_patch_has_a_score_and_the_image_their_pool(kind):
    made, height, width, grid = backbone(kind)
    made.train()
    model = PatchClassifier(made, 2, channels=1, height=height, width=width, pooling="noisy_or")
    assert made.training
    model.eval()
    assert model.grid == grid
    images = torch.rand(3, 1, height, width)
    with torch.no_grad():
        patches, pooled = model.patch_logits(images), model(images)
    assert patches.shape == (3, 2, *grid)
    expected = noisy_or_pooling(patches.flatten(2).double().sigmoid().numpy())
    np.testing.assert_allclose(pooled.sigmoid().numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("kind", list(BACKBONES))
def test_the_map_is_upright(kind):
    """A change of the top right corner changes the score of that patch most."""
    made, height, width, grid = backbone(kind)
    model = PatchClassifier(made, 1, channels=1, height=height, width=width).eval()
    image = torch.full((1, 1, height, width), 0.3)
    changed = image.clone()
    changed[..., : height // grid[0], -(width // grid[1]) :] = 5.0
    with torch.no_grad():
        difference = (model.patch_logits(changed) - model.patch_logits(image)).abs()[0, 0]
    row, column = np.unravel_index(int(difference.argmax()), grid)
    assert (row, column) == (0, grid[1] - 1)


def test_it_learns_with_and_without_marks():
    """The finding is a bright square; where it is, is learnt from the class alone, and faster with marks."""
    made, height, width, grid = backbone("cnn")
    torch.manual_seed(1)
    model = PatchClassifier(made, 1, channels=1, height=height, width=width, pooling="mean")
    images = torch.rand(6, 1, height, width)
    marked = torch.zeros(6, 1, *grid, dtype=torch.bool)
    marked[:3, :, 0, 0] = True
    images[:3, :, :32, :32] += 2
    labels = torch.tensor([1.0, 1, 1, 0, 0, 0])[:, None]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    losses = []
    for _ in range(12):
        optimiser.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(images, marked), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.6 * losses[0]
    with torch.no_grad():
        patches = model.patch_logits(images)[:3, 0]
    assert (patches.flatten(1).argmax(1) == 0).all()


def test_features_without_a_grid_are_refused():
    class Flat(nn.Module):
        def forward_features(self, images):
            return images.flatten(1)

    class Odd(nn.Module):
        def forward_features(self, images):
            return images.new_zeros(1, 7, 5)

    for wrong in (Flat(), Odd()):
        with pytest.raises(InvalidInputError) as caught:
            PatchClassifier(wrong, 2, channels=1, height=8, width=8)
        assert caught.value.field == "backbone"
