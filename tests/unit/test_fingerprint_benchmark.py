"""Fingerprints of real images find the originals of their variants; the benchmark's tasks do not leak."""

import json

import numpy as np
import pytest
import torch

from benchmarks import bundled_images, fingerprints
from benchmarks.bundled_images import CELL, PARTS, SIDE, TASKS, cut_task
from benchmarks.fingerprint_extractors import Extractor, random_extractor
from benchmarks.fingerprint_privacy import vary_privacy
from benchmarks.fingerprint_retrieval import FrechetOfFeatures, Pool, extract_pool, found_share, retrieve_by
from benchmarks.fingerprint_settings import vary_bins, vary_samples, vary_storage
from lifelong_core.develop.fingerprints.distances.registry import METHODS
from lifelong_core.develop.fingerprints.feature_set import make_feature_fingerprint
from lifelong_core.develop.fingerprints.gaussian import make_gaussian_fingerprint

SAMPLES = 30
VARIANTS = ("other samples", "blurred, 2 pixels")
SMOOTHED, DEFINITION = "bKLD(small,smoothed)", "bKLD(small,target)"


@pytest.fixture(scope="module")
def extractor() -> Extractor:
    torch.set_num_threads(1)
    return random_extractor("resnet18", 0)


@pytest.fixture(scope="module")
def pool(extractor: Extractor) -> Pool:
    return extract_pool(extractor, 0, SAMPLES, variants=VARIANTS)


def test_there_are_tasks_and_samples_enough() -> None:
    assert len(TASKS) == 16
    for name in TASKS:
        sets = [cut_task(name, part, SAMPLES, 0) for part in PARTS]
        assert [one.images.shape for one in sets] == [(SAMPLES, SIDE, SIDE, 3)] * 3
        assert all(len(np.unique(one.labels)) >= 2 for one in sets)


def test_the_original_is_found_in_the_first_two_places_of_sixteen(pool: Pool) -> None:
    found = {name: found_share(retrieve_by(pool, METHODS[name])) for name in (SMOOTHED, DEFINITION, "VDNA")}
    assert found[SMOOTHED] >= 0.8
    assert found["VDNA"] >= 0.7
    # The definition favours narrow histograms: well above chance (1 in 8), well below the others.
    assert 0.3 < found[DEFINITION] < found[SMOOTHED]


def test_the_parts_of_a_picture_share_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, columns = np.mgrid[: 4 * CELL, : 5 * CELL]
    cells = 10 * (rows // CELL * 5 + columns // CELL)
    picture = np.stack([cells, rows % 256, columns % 256], axis=-1).astype(np.uint8)[None]
    monkeypatch.setattr(bundled_images, "TASKS", {"picture": lambda: picture})
    for seed in range(3):
        seen = [set(np.unique(cut_task("picture", part, 60, seed).images[..., 0])) for part in PARTS]
        assert all(seen)
        assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]


def test_the_parts_of_the_digits_share_no_image() -> None:
    names = [name for name in TASKS if name.startswith("digits")]
    seen = [
        {image.tobytes() for name in names for image in cut_task(name, part, 1000, 0).images}
        for part in PARTS
    ]
    assert sum(len(one) for one in seen) == len(set.union(*seen)) == 1797


def test_frechet_of_features_is_that_of_the_covariances(pool: Pool) -> None:
    one, other = (pool.features["temple", "original"][:, :40], pool.features["flower", "original"][:, :40])
    edges = pool.reference.edges[:40]
    reference = type(pool.reference)(pool.reference.document, edges)
    expected = METHODS["FID"].distance(*(make_gaussian_fingerprint(rows, reference) for rows in (one, other)))
    found = FrechetOfFeatures().distance(
        *(make_feature_fingerprint(rows, reference) for rows in (one, other))
    )
    assert found == pytest.approx(expected, rel=1e-4)


def test_settings_are_varied(pool: Pool) -> None:
    few = Pool(pool.reference, {key: one for key, one in pool.features.items() if "digits" not in key[0]})
    assert {row["bins"] for row in vary_bins(few, (5, 20))} == {5, 20}
    shares = {
        number: found_share([row for row in vary_samples(few, (2, SAMPLES)) if row["samples"] == number])
        for number in (2, SAMPLES)
    }
    assert shares[2] < shares[SAMPLES]
    private = vary_privacy(few, samples=(SAMPLES,), epsilons=(1.0,))
    noisy, exact = (
        found_share([row for row in private if np.isinf(row["epsilon"]) == is_exact])
        for is_exact in (False, True)
    )
    assert noisy < exact
    storage = vary_storage(few)
    assert found_share(storage, "same_first") > 0.95


def test_the_tables_are_printed(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fingerprints, "extract_pool", lambda *_, **__: pool)
    monkeypatch.setattr(fingerprints, "VARIANTS", dict.fromkeys(VARIANTS))
    monkeypatch.setattr("sys.argv", ["fingerprints", "--quick", "--json", "--only", "retrieval"])
    fingerprints.main()
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("blurred, 2 pixels") for line in lines)
    assert json.loads(lines[-1])["retrieval"]["found"]["FID"]["resnet18, random"] > 0.5
