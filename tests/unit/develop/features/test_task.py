"""From images to fingerprints: what is read, what is reported, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

from lifelong_core.develop import distance, fingerprint_task
from lifelong_core.develop.features.backbone import Backbone
from lifelong_core.develop.features.task import KINDS
from lifelong_core.develop.fingerprints.extractor import ExtractorReference
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.features.drawn import draw_images


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("task")
    draw_images(folder, 60, classes=("ill", "well", "well"))
    (folder / "README.txt").write_text("no image")
    return folder


def test_the_same_images_give_the_same_fingerprint(
    images: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    first, second = (
        fingerprint_task(images, extractor, backbone, samples=30, seed=4, batch_size=8).fingerprint
        for _ in range(2)
    )
    assert first.to_bytes() == second.to_bytes()
    assert isinstance(first, HistogramFingerprint)
    assert (first.samples, first.bins, first.seed, first.extractor) == (30, 100, 4, extractor.digest)


def test_another_seed_draws_other_images(
    images: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    first, second = (
        fingerprint_task(images, extractor, backbone, samples=30, seed=seed).fingerprint for seed in (0, 1)
    )
    assert distance(first, second, "VDNA") > 0


def test_all_kinds_come_from_one_pass(
    images: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    stages: list[str] = []
    found = fingerprint_task(
        images,
        extractor,
        backbone,
        kinds=KINDS,
        draws=10,
        batch_size=25,
        progress=lambda stage, done, _total: stages.append(f"{stage} {done}"),
    )
    assert list(found.fingerprints) == list(KINDS)
    assert {fingerprint.kind for fingerprint in found.fingerprints.values()} == set(KINDS)
    assert stages[:4] == ["list 60", "read 25", "read 50", "read 60"]
    assert stages[-1] == "fisher 10"


def test_facts_and_report_say_what_was_read(
    images: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    found = fingerprint_task(images, extractor, backbone, samples=50)
    facts, report = found.facts, found.report
    assert facts.class_sizes == {"ill": 20, "well": 40}
    assert (facts.samples, facts.classes, facts.imbalance) == (60, 2, 2.0)
    assert (facts.smallest_pixels, facts.largest_pixels) == (400, 400)
    assert facts.intrinsic_dimension is not None
    assert (report.images, report.passed_over, report.sampled, report.read, report.unreadable) == (
        60,
        1,
        50,
        50,
        0,
    )
    card = facts.card("drawn", keywords=("synthetic",))
    assert (card.classes, card.samples, card.imbalance, card.keywords) == (2, 60, 2.0, ("synthetic",))


def test_unlabelled_images_need_a_number_of_classes_for_a_card(
    images: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    facts = fingerprint_task(images, extractor, backbone, labelled=False).facts
    assert facts.classes is None
    with pytest.raises(InvalidInputError, match="classes"):
        facts.card("drawn")
    assert facts.card("drawn", classes=3).classes == 3


def test_unreadable_images_are_named_up_to_the_share(
    tmp_path: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    draw_images(tmp_path, 40)
    whole = (tmp_path / "0003.png").read_bytes()
    (tmp_path / "0003.png").write_bytes(whole[:100])
    (tmp_path / "0005.png").write_bytes(b"no image at all")
    report = fingerprint_task(tmp_path, extractor, backbone, most_unreadable=0.05).report
    assert (report.read, report.unreadable) == (38, 2)
    assert [example.name for example in report.unreadable_examples] == ["0003.png", "0005.png"]
    assert "truncated" in report.unreadable_examples[0].problem
    with pytest.raises(InvalidInputError, match=r"4% of 40 images are unreadable, such as 0003\.png"):
        fingerprint_task(tmp_path, extractor, backbone, most_unreadable=0.04)


def test_wrong_weights_are_refused(
    images: Path, extractor: ExtractorReference, backbone: Backbone, tmp_path: Path
) -> None:
    import torch

    state = {name: tensor.clone() for name, tensor in backbone.module.state_dict().items()}
    next(iter(state.values())).view(-1)[0] += 1e-3
    torch.save(state, tmp_path / "other.pth")
    with pytest.raises(InvalidInputError, match="digest"):
        fingerprint_task(images, extractor, tmp_path / "other.pth")


def test_a_fisher_embedding_needs_classes(
    images: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    with pytest.raises(InvalidInputError, match="two classes"):
        fingerprint_task(images, extractor, backbone, kinds=("fisher",), labelled=False)


def test_an_empty_folder_is_refused(
    tmp_path: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    (tmp_path / "notes.txt").write_text("none")
    with pytest.raises(InvalidInputError, match="no image; 1 files"):
        fingerprint_task(tmp_path, extractor, backbone)


def test_unknown_kinds_are_refused(images: Path, extractor: ExtractorReference, backbone: Backbone) -> None:
    with pytest.raises(InvalidInputError, match="histograms"):
        fingerprint_task(images, extractor, backbone, kinds=("histograms",))


def test_counts_are_those_of_the_features(
    images: Path, extractor: ExtractorReference, backbone: Backbone
) -> None:
    found = fingerprint_task(images, extractor, backbone, kinds=("histogram", "features"), bins=7)
    rows = found.fingerprints["features"].rows  # type: ignore[attr-defined]
    low, high = extractor.edges.T
    places = np.clip(((rows - low) / (high - low) * 7).astype(int), 0, 6)
    expected = np.stack([np.bincount(column, minlength=7) for column in places.T])
    assert np.array_equal(found.fingerprint.counts, expected)  # type: ignore[attr-defined]
