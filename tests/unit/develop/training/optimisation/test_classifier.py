"""The timm model of a recipe: its size, its initial weights, its second head."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from lifelong_core.develop.features.backbone import weights_digest
from lifelong_core.develop.training.optimisation.classifier import (
    add_source_head,
    create_classifier,
    load_weights,
    read_initial_weights,
    replace_classifier,
)
from lifelong_core.values.errors import ConfigurationError, InvalidInputError
from tests.unit.develop.training.optimisation.drawn import recipe

SIZE = (32, 32)


@pytest.mark.parametrize("architecture", ["test_resnet", "test_vit", "test_convnext"])
def test_weights_of_a_file_are_those_of_the_model(architecture: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    # As a file of pretrained weights: colours, another number of classes, the architecture's own size.
    given = create_classifier(
        recipe(architecture=architecture, colour="rgb"), 7, size=(160, 160), weights=None
    )
    save_file(given.state_dict(), tmp_path / f"{architecture}.safetensors")
    wanted = recipe(architecture=architecture, initial_weights="pretrained")
    weights = read_initial_weights(wanted, tmp_path)
    assert weights is not None
    found = create_classifier(wanted, 4, size=SIZE, weights=weights).state_dict()
    expected = given.state_dict()
    alike = [name for name in found if found[name].shape == expected[name].shape]
    assert len(alike) >= len(found) - 4
    assert all(torch.equal(found[name], expected[name]) for name in alike)
    changed = {name for name in found if name not in alike}
    # The classifier is new; the first layer is for one colour; embeddings of positions are for another size.
    assert all(
        any(part in name for part in ("fc", "head", "conv1", "stem", "patch_embed", "pos_embed"))
        for name in changed
    )
    first = next(name for name in changed if found[name].ndim == 4)
    torch.testing.assert_close(found[first], expected[first].sum(1, keepdim=True))


def test_random_weights_follow_the_seed() -> None:
    digests = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        digests.append(weights_digest(create_classifier(recipe(), 3, size=SIZE, weights=None).state_dict()))
    assert digests[0] == digests[1] != digests[2]
    assert read_initial_weights(recipe(), None) is None


def test_a_file_of_another_architecture_is_refused(tmp_path: Path) -> None:
    save_file({"fc.weight": torch.zeros(2, 2)}, tmp_path / "test_resnet.safetensors")
    with pytest.raises(InvalidInputError, match="lacks"):
        read_initial_weights(recipe(initial_weights="pretrained"), tmp_path)


def test_without_a_file_and_without_the_hub_it_says_where_to_put_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", unreachable)
    monkeypatch.setattr("timm.models._builder.load_state_dict_from_url", unreachable)
    with pytest.raises(ConfigurationError) as refused:
        read_initial_weights(recipe(architecture="resnet18", initial_weights="pretrained"), tmp_path)
    assert refused.value.field == "LIFELONG_TRAINING_WEIGHTS"
    assert "resnet18.safetensors" in str(refused.value.hint)


def test_unknown_and_unsuited_architectures_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="timm has no model") as unknown:
        create_classifier(recipe(architecture="resnet3"), 2, size=SIZE, weights=None)
    assert "resnet" in str(unknown.value.hint)
    # Its input must be a multiple of 32 x 7.
    with pytest.raises(InvalidInputError, match="not suited for images of 40 x 40"):
        create_classifier(recipe(architecture="maxvit_nano_rw_256"), 2, size=(40, 40), weights=None)


@pytest.mark.parametrize(
    "architecture", ["test_resnet", "test_vit", "test_convnext", "mobilenetv3_small_050"]
)
def test_a_second_head_sees_what_the_classifier_sees(architecture: str) -> None:
    target = create_classifier(recipe(architecture=architecture), 3, size=SIZE, weights=None)
    image = torch.rand(1, 1, *SIZE)
    both = add_source_head(target, 5, image)
    with torch.inference_mode():
        logits, others = both(image.expand(2, -1, -1, -1))
        torch.testing.assert_close(logits[:1], target(image), atol=1e-5, rtol=1e-4)
    assert others.shape == (2, 5)


def test_an_architecture_with_two_classifiers_is_not_co_trained() -> None:
    target = create_classifier(
        recipe(architecture="deit_tiny_distilled_patch16_224"), 3, size=SIZE, weights=None
    )
    with pytest.raises(InvalidInputError, match="co-training"):
        add_source_head(target, 5, torch.rand(1, 1, *SIZE))


def test_the_second_phase_begins_with_a_new_classifier_on_the_same_backbone() -> None:
    module = create_classifier(recipe(), 3, size=SIZE, weights=None)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    replace_classifier(module, 6)
    after = module.state_dict()
    assert module(torch.rand(2, 1, *SIZE)).shape == (2, 6)
    changed = {name for name in after if after[name].shape != before[name].shape}
    assert changed == {"fc.weight", "fc.bias"}
    assert all(torch.equal(after[name], before[name]) for name in after if name not in changed)


def test_loaded_weights_count_where_a_model_keeps_attention_biases() -> None:
    wanted = recipe(architecture="tiny_vit_5m_224")
    module = create_classifier(wanted, 2, size=SIZE, weights=None)
    image = torch.rand(1, 1, *SIZE)
    other = {
        name: 4 * torch.rand(tensor.shape) if "attention_biases" in name else tensor
        for name, tensor in module.state_dict().items()
    }
    with torch.inference_mode():
        before = module.eval()(image)
        load_weights(module, other)
        found = module.eval()(image)
        again = create_classifier(wanted, 2, size=SIZE, weights=None).train()
        again.load_state_dict(other)
        torch.testing.assert_close(found, again.eval()(image))
    assert not torch.allclose(found, before, atol=1e-4)
