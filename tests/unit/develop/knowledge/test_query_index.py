import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lifelong_core.develop.fingerprints.distances.binned_kld import BinnedKLD, Weighting
from lifelong_core.develop.fingerprints.histogram import HistogramFingerprint, Privacy
from lifelong_core.develop.knowledge.index_file import IndexFile, remove_other_indexes
from lifelong_core.develop.knowledge.query_index import QueryIndex
from lifelong_core.values.errors import InvalidInputError
from tests.unit.develop.knowledge.examples import make_fingerprint

Fingerprints = dict[str, HistogramFingerprint]
WEIGHTINGS: tuple[Weighting, ...] = ("target", "source", "uniform")


def open_file(folder: Path, fingerprints: Fingerprints, *, built: bool | None = None) -> IndexFile:
    """Open an index; `built` says whether it has to be built for this."""
    loaded: list[str] = []

    def load(task: str) -> HistogramFingerprint:
        loaded.append(task)
        return fingerprints[task]

    file = IndexFile.open(folder, {task: one.digest for task, one in fingerprints.items()}, load)
    if built is not None:
        assert bool(loaded) == built
    return file


def many(count: int = 150, **options: int) -> Fingerprints:
    return {f"t{number:03}": make_fingerprint(number, **options) for number in range(count)}


def private(seed: int) -> HistogramFingerprint:
    """Counts with noise: the features have different sums."""
    exact = make_fingerprint(seed)
    counts = exact.counts + np.random.default_rng(seed).integers(0, 9, exact.counts.shape)
    return HistogramFingerprint(
        exact.extractor, 200, counts, exact.mean_features, exact.mean_shares, 0, Privacy(epsilon=1.0)
    )


def define(source: HistogramFingerprint, target: HistogramFingerprint, weighting: Weighting) -> float:
    """Definition 5.13, number by number in extended precision."""
    total = np.longdouble(0)
    means = target.mean_features.astype(np.longdouble)
    for feature in range(target.features):
        p, q = (
            one.counts[feature].astype(np.longdouble) / one.counts[feature].sum() for one in (source, target)
        )
        soft = np.exp(p) / np.exp(p).sum()
        divergence = sum(q[i] * np.log(q[i] / soft[i]) for i in range(len(q)) if q[i] > 0)
        weight = {
            "target": np.exp(means[feature]) / np.exp(means).sum(),
            "source": np.longdouble(source.mean_shares[feature]),
            "uniform": np.longdouble(1) / target.features,
        }[weighting]
        total += weight * divergence
    return float(total)


MIXED: Callable[[], Fingerprints] = lambda: {  # noqa: E731
    **many(20),
    **{f"private{seed}": private(seed) for seed in range(3)},
    **{f"wide{seed}": make_fingerprint(seed, samples=1_000_000) for seed in range(3)},
}


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("make", [lambda: many(30), MIXED], ids=["exact", "mixed"])
def test_distances_and_order_are_those_of_the_definition(
    tmp_path: Path, weighting: Weighting, make: Callable[[], Fingerprints]
) -> None:
    fingerprints = make()
    index = QueryIndex(open_file(tmp_path, fingerprints))
    assert index.tasks == tuple(sorted(fingerprints))
    for target in (make_fingerprint(1000), private(1001), fingerprints["t003"]):
        wanted = np.array([define(fingerprints[task], target, weighting) for task in index.tasks])
        np.testing.assert_allclose(index.distances(target, weighting), wanted, rtol=1e-5)
        nearest = index.nearest(target, len(wanted), weighting)
        np.testing.assert_allclose([one.distance for one in nearest], np.sort(wanted), rtol=1e-12)
        assert [one.task for one in nearest] == [
            index.tasks[row] for row in np.argsort(wanted, kind="stable")
        ]


@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_sources_closer_than_single_precision_are_ordered(tmp_path: Path, weighting: Weighting) -> None:
    """Distances that differ by less than the error of float32: only the comparison in float64 orders them."""
    base = make_fingerprint(5, features=64, bins=20, samples=60_000)
    rng = np.random.default_rng(0)
    fingerprints: Fingerprints = {}
    for number in range(40):
        counts = base.counts.copy()
        row, (low, high) = rng.integers(64), rng.choice(20, 2, replace=False)
        moved = min(1, counts[row, low])
        counts[row, low] -= moved
        counts[row, high] += moved
        fingerprints[f"t{number:02}"] = HistogramFingerprint(
            base.extractor, base.samples, counts, base.mean_features, base.mean_shares
        )
    index = QueryIndex(open_file(tmp_path, fingerprints))
    target = make_fingerprint(6, features=64, bins=20)
    wanted = np.array([define(fingerprints[task], target, weighting) for task in index.tasks])
    estimated = index.distances(target, weighting)
    assert np.ptp(wanted) < 1e-5
    if weighting == "target":  # so that the comparison in float64 has something to mend
        assert (np.argsort(estimated, kind="stable") != np.argsort(wanted, kind="stable")).any()
    got = [one.task for one in index.nearest(target, 40, weighting)]
    assert [wanted[index.tasks.index(task)] for task in got] == pytest.approx(np.sort(wanted), rel=1e-14)


def smooth(seed: int) -> HistogramFingerprint:
    """Histograms of many images, which few directions describe."""
    rng = np.random.default_rng(seed)
    centres, widths = rng.uniform(10, 30, size=(2, 8, 1))
    shares = np.exp(-(((np.arange(40) - centres) / widths) ** 2))
    counts = np.rint(30_000 * shares / shares.sum(axis=1, keepdims=True)).astype(np.int64)
    counts[np.arange(8), counts.argmax(axis=1)] += 30_000 - counts.sum(axis=1)
    return HistogramFingerprint("a" * 64, 30_000, counts, centres[:, 0] / 10, np.full(8, 1 / 8))


@pytest.mark.parametrize("weighting", ["target", "uniform"])
@pytest.mark.parametrize(
    ("make", "is_enough"),
    [(smooth, True), (lambda seed: make_fingerprint(seed, features=8, bins=40, samples=50), False)],
    ids=["smooth", "rough"],
)
def test_sketches_bound_the_distances_and_leave_few_candidates_of_smooth_histograms(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    weighting: Weighting,
    make: Callable[[int], HistogramFingerprint],
    is_enough: bool,
) -> None:
    fingerprints = {f"t{seed:03}": make(seed) for seed in range(100)}
    index = QueryIndex(open_file(tmp_path, fingerprints))
    estimate, estimated = QueryIndex._estimate, []
    monkeypatch.setattr(QueryIndex, "_estimate", lambda *given: estimated.append(1) or estimate(*given))
    for seed in range(200, 205):
        target = make(seed)
        wanted = np.array([define(fingerprints[task], target, weighting) for task in index.tasks])
        values, errors = index._sketch(index._prepare(target, weighting))
        assert (np.abs(values - wanted) <= errors).all()
        nearest = index.nearest(target, 5, weighting)
        assert [one.task for one in nearest] == [index.tasks[row] for row in np.argsort(wanted)[:5]]
    assert bool(estimated) != is_enough


def test_equal_tasks_are_ordered_by_name(tmp_path: Path) -> None:
    fingerprints = {name: make_fingerprint(1) for name in ("b", "c", "a")} | {"z": make_fingerprint(2)}
    index = QueryIndex(open_file(tmp_path, fingerprints))
    nearest = index.nearest(make_fingerprint(3), 4)
    assert [one.task for one in nearest if one.task != "z"] == ["a", "b", "c"]


@pytest.mark.parametrize("threads", [1, 3])
def test_all_tasks_are_compared_in_blocks_and_by_all_threads(tmp_path: Path, threads: int) -> None:
    fingerprints = {f"t{number:04}": make_fingerprint(number % 17) for number in range(1201)}
    index = QueryIndex(open_file(tmp_path, fingerprints), threads=threads)
    target = make_fingerprint(99)
    wanted = BinnedKLD("target").distances([fingerprints[task] for task in index.tasks], target)
    np.testing.assert_allclose(index.distances(target), wanted, rtol=1e-5)


def test_only_as_many_as_asked_for_are_given(tmp_path: Path) -> None:
    index = QueryIndex(open_file(tmp_path, many(10)))
    target = make_fingerprint(50)
    everything = index.nearest(target, 100)
    assert len(everything) == 10
    assert index.nearest(target, 3) == everything[:3]
    assert index.nearest(target, 0) == ()


@pytest.mark.parametrize("options", [{"extractor": "b" * 64}, {"bins": 6}, {"features": 5}])
def test_a_target_that_is_not_comparable_is_refused(tmp_path: Path, options: dict) -> None:
    index = QueryIndex(open_file(tmp_path, many(3)))
    with pytest.raises(InvalidInputError, match="expected 4 features in 5 bins") as caught:
        index.nearest(make_fingerprint(1, **options), 1)
    assert caught.value.field == "target"


def test_a_file_is_built_once_for_the_same_fingerprints(tmp_path: Path) -> None:
    fingerprints = many(5)
    open_file(tmp_path, fingerprints, built=True)
    open_file(tmp_path, dict(reversed(fingerprints.items())), built=False)
    changed = fingerprints | {"t001": make_fingerprint(77)}
    file = open_file(tmp_path, changed, built=True)
    assert (file.counts_of(1) == changed["t001"].counts).all()
    assert len(list(tmp_path.iterdir())) == 2
    remove_other_indexes(tmp_path, [{task: one.digest for task, one in changed.items()}])
    assert len(list(tmp_path.iterdir())) == 1
    open_file(tmp_path, changed, built=False)


def test_sketches_of_few_tasks_use_all_of_them(tmp_path: Path) -> None:
    file = open_file(tmp_path, {"a": make_fingerprint(1, bins=40)})
    assert file.basis.shape == (40, 16)
    np.testing.assert_allclose(file.basis.T @ file.basis, np.eye(16), atol=1e-12)


def damages(content: bytes) -> Iterator[bytes]:
    yield b""
    yield b"short"
    yield content[:-1]
    yield content[: len(content) // 2]
    yield content + b"x"
    for place in (9, len(content) // 2, len(content) - 200, len(content) - 45, len(content) - 10):
        yield content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


def test_a_damaged_file_is_built_again(tmp_path: Path) -> None:
    fingerprints = many(5)
    open_file(tmp_path, fingerprints)
    (path,) = tmp_path.iterdir()
    content = path.read_bytes()
    for damaged in damages(content):
        path.unlink()
        path.write_bytes(damaged)
        file = open_file(tmp_path, fingerprints, built=True)
        assert (file.counts_of(4) == fingerprints["t004"].counts).all()
        assert path.read_bytes() == content


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    fingerprints = many(70)
    digests = {task: one.digest for task, one in fingerprints.items()}

    def load(task: str) -> HistogramFingerprint:
        if task == "t066":
            raise KeyError(task)
        return fingerprints[task]

    with pytest.raises(KeyError):
        IndexFile.open(tmp_path, digests, load)
    assert list(tmp_path.iterdir()) == []


def test_only_unfinished_files_of_dead_processes_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".building-dead.index").write_bytes(b"half")
    fingerprints = many(70)
    digests = {task: one.digest for task, one in fingerprints.items()}

    def load(task: str) -> HistogramFingerprint:
        remove_other_indexes(tmp_path, [])
        assert len(list(tmp_path.glob(".building-*"))) == 1
        return fingerprints[task]

    IndexFile.open(tmp_path, digests, load)
    assert [path.name[0] != "." for path in tmp_path.iterdir()] == [True]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (make_fingerprint(9, extractor="b" * 64), "another extractor or size"),
        (make_fingerprint(9, bins=9), "another extractor or size"),
    ],
)
def test_fingerprints_that_cannot_be_compared_are_refused(
    tmp_path: Path, other: HistogramFingerprint, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        open_file(tmp_path, many(3) | {"x": other})


def test_wrong_or_no_fingerprints_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="at least one"):
        open_file(tmp_path, {})
    with pytest.raises(InvalidInputError, match="another digest"):
        IndexFile.open(tmp_path, {"a": "0" * 64}, lambda _: make_fingerprint(1))


def build_at_once(folder: str, barrier: object) -> None:
    fingerprints = many(40)
    barrier.wait()  # type: ignore[attr-defined]
    for _ in range(5):
        file = open_file(Path(folder), fingerprints)
        if not (file.counts_of(7) == fingerprints["t007"].counts).all():
            os._exit(1)
        for path in Path(folder).glob("[0-9a-f]*.index"):
            path.unlink(missing_ok=True)


def test_two_processes_may_build_and_remove_it_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    processes = [context.Process(target=build_at_once, args=(str(tmp_path), barrier)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]
