"""Do fingerprints find related tasks? Real images without a network: retrieval, settings, privacy, time and memory.

    python -m benchmarks.fingerprints [--json] [--quick] [--only PART ...] [--architecture NAME --weights FILE]

`retrieval`: 16 tasks made from images that installed libraries bundle (`benchmarks.bundled_images`), and eight
variants of each, made from other samples. Each variant is the target once; the sources are the 16 originals, or all
other tasks and variants. A case counts as found if the original is in the first two places. Extractors: networks with
random weights, a small network trained on digits, and with --weights a timm model with weights of a local file. FED is
left out (2,000 draws for each of 432 tasks), and so is Manual (a variant would have the keywords of its original).
`settings`: samples, bins and storage of the index. `privacy`: differentially private sources.
`cost`: seconds and peak memory of `lifelong_core.develop.fingerprint_task`, in a process of its own.
The intervals are Wilson's, 95 %; cases of one task are not independent, so they are too narrow.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from scipy.stats import binomtest

from benchmarks.bundled_images import TASKS, VARIANTS, cut_task
from benchmarks.fingerprint_extractors import (
    Extractor,
    digits_extractor,
    file_extractor,
    random_extractor,
)
from benchmarks.fingerprint_privacy import vary_privacy
from benchmarks.fingerprint_retrieval import (
    PLACES,
    FrechetOfFeatures,
    Pool,
    Row,
    extract_pool,
    found_share,
    retrieve_by,
)
from benchmarks.fingerprint_settings import COMPARED, vary_bins, vary_samples, vary_storage
from benchmarks.machine import describe
from lifelong_core.develop import fingerprint_task
from lifelong_core.develop.features.backbone import Backbone
from lifelong_core.develop.features.reference import make_extractor_reference
from lifelong_core.develop.fingerprints.distances.registry import METHODS

PARTS = ("retrieval", "settings", "privacy", "cost")
SEEDS, SAMPLES, MOST_SAMPLES = 3, 120, 1000
PICTURES = tuple(name for name in TASKS if not name.startswith("digits"))
FEW_VARIANTS = ("other samples", "blurred, 2 pixels", "half contrast")
LEFT_OUT = ("FED", "Manual")
SLOW = ("EMD", "bKLD(large,unweighted)", "bKLD(large,source)")
"""on the first seed only"""
COST_IMAGES, COST_EDGE, COST_ARCHITECTURE = 1000, 224, "resnet34"
GOAL = 0.8


def extractors(seed: int, *, quick: bool, architecture: str, weights: Path | None) -> Iterator[Extractor]:
    """All extractors; the networks with random weights and the one for digits depend on the seed."""
    yield random_extractor("resnet18", seed)
    if not quick:
        yield digits_extractor(seed)
    if weights is not None:
        yield file_extractor(architecture, weights)


def measure_retrieval(pool: Pool, *, with_slow: bool) -> list[Row]:
    """Places of the originals, for each method."""
    rows: list[Row] = []
    for name, method in METHODS.items():
        if name in LEFT_OUT or (name in SLOW and not with_slow):
            continue
        if name == "FID":
            method = FrechetOfFeatures()
        rows += [{**row, "method": name, "pool": "originals"} for row in retrieve_by(pool, method)]
        if name in COMPARED:
            found = retrieve_by(pool, method, among_all=True)
            rows += [{**row, "method": name, "pool": "all"} for row in found]
    return rows


def measure_cost(images: int) -> Row:
    """Seconds and peak memory of one fingerprint from PNG files, in a fresh process with one thread."""
    with tempfile.TemporaryDirectory() as folder:
        for number, image in enumerate(cut_task("temple", "original", images, 0).images):
            resized = Image.fromarray(image).resize((COST_EDGE, COST_EDGE))
            resized.save(Path(folder) / f"{number:05d}.png")
        context = multiprocessing.get_context("spawn")
        with context.Pool(1) as pool:
            return pool.apply(_cost, (Path(folder), images))


def _cost(folder: Path, images: int) -> Row:
    backbone: Backbone = random_extractor(COST_ARCHITECTURE, 0).backbone
    reference = make_extractor_reference(folder, backbone, names=("bundled",), samples=32, threads=1)
    before = _peak_megabytes()
    begin, begin_processor = time.perf_counter(), time.process_time()
    fingerprint_task(folder, reference, backbone, labelled=False, threads=1)
    seconds, processor = time.perf_counter() - begin, time.process_time() - begin_processor
    return {
        "architecture": COST_ARCHITECTURE,
        "images": images,
        "seconds_per_1000": seconds / images * 1000,
        "processor_seconds_per_1000": processor / images * 1000,
        "peak_megabytes": _peak_megabytes(),
        "peak_megabytes_after_32_images": before,
    }


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def interval(rows: Sequence[Row], key: str = "found") -> str:
    """Share of the rows in per cent, with its interval."""
    hits = sum(bool(row[key]) for row in rows)
    bounds = binomtest(hits, len(rows)).proportion_ci(method="wilson")
    return f"{100 * hits / len(rows):5.1f} ({100 * bounds.low:.0f}-{100 * bounds.high:.0f})"


def select(rows: Sequence[Row], **fields: Any) -> list[Row]:
    """Rows with these values."""
    return [row for row in rows if all(row[key] == value for key, value in fields.items())]


def values(rows: Sequence[Row], key: str) -> list[Any]:
    """Different values of a field, in order of appearance."""
    return list(dict.fromkeys(row[key] for row in rows))


def show_retrieval(rows: list[Row]) -> Row:
    """Print the shares of the cases that are found; return them."""
    originals, everything = select(rows, pool="originals"), select(rows, pool="all")
    names = values(rows, "extractor")
    chance = PLACES / originals[0]["sources"]
    print(
        f"\noriginal in the first {PLACES} of {originals[0]['sources']}, per cent; by chance {100 * chance:.1f}"
    )
    print(f"{'':24s}" + "".join(f"{name:>24s}" for name in names))
    summary: Row = {"chance": chance, "goal": GOAL, "found": {}}
    for method in values(originals, "method"):
        cells = [select(originals, method=method, extractor=name) for name in names]
        print(f"{method:24s}" + "".join(f"{interval(cell):>24s}" for cell in cells))
        summary["found"][method] = {name: found_share(cell) for name, cell in zip(names, cells, strict=True)}
    for name in names:
        print(f"\nby kind of variant, {name}")
        print(f"{'':24s}" + "".join(f"{method:>24s}" for method in COMPARED))
        for variant in VARIANTS:
            cells = [
                interval(select(originals, method=method, extractor=name, variant=variant))
                for method in COMPARED
            ]
            print(f"{variant:24s}" + "".join(f"{cell:>24s}" for cell in cells))
    count = everything[0]["sources"]
    relatives = len(VARIANTS) / count
    print(
        f"\nfirst of all {count} others is the original or a variant of it, per cent; by chance {100 * relatives:.1f}"
    )
    for method in COMPARED:
        cells = [interval(select(everything, method=method, extractor=name), "related") for name in names]
        print(f"{method:24s}" + "".join(f"{cell:>24s}" for cell in cells))
    print("\nthe most frequent first source, per cent of all targets (1 / 16 = 6.2 if all were equal)")
    for method in COMPARED:
        cells = [_most_frequent(select(originals, method=method, extractor=name)) for name in names]
        print(f"{method:24s}" + "".join(f"{cell:>24s}" for cell in cells))
    return summary


def _most_frequent(rows: Sequence[Row]) -> str:
    firsts = [row["first"] for row in rows]
    name = max(sorted(set(firsts)), key=firsts.count)
    return f"{100 * firsts.count(name) / len(firsts):.1f} {name}"


def show_settings(rows: list[Row], *keys: str) -> None:
    """Print the share of found cases for each setting."""
    print(f"\n{', '.join(keys)}: original in the first {PLACES} of {rows[0]['sources']}, per cent")
    print(f"{'':24s}" + "".join(f"{method:>24s}" for method in COMPARED))
    for setting in dict.fromkeys(tuple(row[key] for key in keys) for row in rows):
        chosen = select(rows, **dict(zip(keys, setting, strict=True)))
        cells = [interval(select(chosen, method=method)) for method in COMPARED]
        label = ", ".join(f"{value:g}" for value in setting)
        print(f"{label:24s}" + "".join(f"{cell:>24s}" for cell in cells))


def show_storage(rows: list[Row]) -> None:
    """Print how often the order is that of float64."""
    print("\nstorage of the index: same first source, same first five sources, per cent")
    for method in values(rows, "method"):
        for storage in values(rows, "storage"):
            chosen = select(rows, method=method, storage=storage)
            print(
                f"{method:24s}{storage:10s}{interval(chosen, 'same_first'):>18s}{interval(chosen, 'same_five'):>18s}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        epilog="\n".join(__doc__.splitlines()[4:]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--quick", action="store_true", help="one seed, one extractor, fewer images")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to measure")
    parser.add_argument("--architecture", default="resnet34", help="timm model of --weights")
    parser.add_argument(
        "--weights", type=Path, help="weights of one more extractor, safetensors or state dictionary"
    )
    options = parser.parse_args()
    torch.set_num_threads(1)
    result: Row = {
        "machine": describe("torch", "timm", "numpy", "scipy"),
        "seeds": 1 if options.quick else SEEDS,
    }
    print(json.dumps(result["machine"]))
    samples = 40 if options.quick else SAMPLES
    if "retrieval" in options.only:
        rows: list[Row] = []
        for seed in range(result["seeds"]):
            for extractor in extractors(
                seed, quick=options.quick, architecture=options.architecture, weights=options.weights
            ):
                pool = extract_pool(extractor, seed, samples)
                found = measure_retrieval(pool, with_slow=seed == 0 and not options.quick)
                rows += [{**row, "extractor": extractor.name, "seed": seed} for row in found]
        result["retrieval"] = show_retrieval(rows)
    if {"settings", "privacy"} & set(options.only):
        most = samples if options.quick else MOST_SAMPLES
        pool = extract_pool(random_extractor("resnet18", 0), 0, most, tasks=PICTURES, variants=FEW_VARIANTS)
        if "settings" in options.only:
            show_settings(vary_bins(pool), "bins")
            show_settings(vary_samples(pool), "samples")
            show_storage(vary_storage(pool))
        if "privacy" in options.only:
            show_settings(vary_privacy(pool), "samples", "epsilon")
    if "cost" in options.only:
        result["cost"] = measure_cost(COST_IMAGES // 10 if options.quick else COST_IMAGES)
        print(f"\n{json.dumps(result['cost'])}")
    if options.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
