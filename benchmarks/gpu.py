"""Inference on a GPU: our classifier beside the bare session, the parts of a run, and the whole service.

`python -m benchmarks.gpu [--json] [--quick] [--provider NAME] [--tensorrt] [--no-service] [--models FOLDER]`.

It needs an NVIDIA GPU with a driver for CUDA 13, and the extra gpu with psutil; to export the graphs also torch (a
build for CPUs suffices), torchvision, timm and onnxscript: the extra develop; and wrk, which sends the requests to
the service. `onnxruntime` must not be installed beside `onnxruntime-gpu`. Nothing is downloaded. Where `--models` names
a folder with the graphs of an earlier run, the packages of the export are not needed. What is missing is an error with
exit status 2.

`--provider CPUExecutionProvider --quick` runs everything on the CPU, with small models.
"""

import argparse
import importlib.util
import io
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks.gpu_graphs import FLOAT32, FULL, HALF, PRECISIONS, QUICK, Architecture
from benchmarks.machine import describe
from benchmarks.serving.wrk import check_wrk
from lifelong_core.configuration.gpu import GpuUse
from lifelong_core.values.errors import LifelongError

CUDA, TENSORRT, CPU = (f"{name}ExecutionProvider" for name in ("CUDA", "Tensorrt", "CPU"))

BATCHES = (1, 2, 4, 8, 16, 32, 64)
QUICK_BATCHES = (1, 4)
DEFAULTS_BATCHES = (1, 8, 64)
"""Batch sizes with which the default options of ONNX Runtime are measured."""
SOURCE_EDGE = 512
"""Edge in pixels of the JPEG files that are decoded."""
UNUSABLE = 2
"""Exit status where the machine or a package lacks something."""
OTHER_ARMS = ("defaults", "binding", "kernel", "copy", "pageable", "stack")
HEADER = f"""\
| batch | ours, images/s | p99 ms | session | p99 ms | {" | ".join(OTHER_ARMS)} | ours / session |
{"|---" * 12}|"""

Row = dict[str, Any]


def main() -> int:
    """Measure, print tables, and with --json one JSON object at the end."""
    chosen = _arguments()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # tables are of use when the run is cut off
    try:
        _check_packages(chosen.models, QUICK if chosen.quick else FULL)
        if chosen.service:
            check_wrk()
        providers = _providers(chosen.provider, with_tensorrt=chosen.tensorrt)
    except LifelongError as error:
        print(error, file=sys.stderr)
        return UNUSABLE
    with tempfile.TemporaryDirectory() if chosen.models is None else nullcontext(chosen.models) as folder:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        figures = measure(folder, providers, is_quick=chosen.quick, with_service=chosen.service)
    if chosen.json:
        print(json.dumps(figures))
    return 0


def measure(
    folder: Path, providers: Sequence[Sequence[str]], *, is_quick: bool, with_service: bool
) -> dict[str, Any]:
    """Figures of all architectures with each list of providers; tables are printed as they are ready."""
    from benchmarks.gpu_runs import ARMS, decoding

    architectures = QUICK if is_quick else FULL
    machine = _machine()
    print(f"{machine['processor']}, {machine['cores']} cores, {machine['gpu']}, {machine['versions']}")
    for name, meaning in ARMS.items():
        print(f"{name}: {meaning}")
    figures: dict[str, Any] = {"machine": machine, "graphs": [], "service": []}
    for architecture in architectures:
        files = architecture.files(folder)
        decoded = decoding(architecture, SOURCE_EDGE, 0.5 if is_quick else 3.0)
        for some in providers:
            row = _graphs(architecture, files, some, folder, decoded, is_quick=is_quick)
            figures["graphs"].append(row)
    if with_service:
        figures["service"] = _service(architectures[0], folder, providers[0], is_quick=is_quick)
    return figures


def _graphs(
    architecture: Architecture,
    files: dict[str, Path],
    providers: Sequence[str],
    folder: Path,
    decoded: float,
    *,
    is_quick: bool,
) -> Row:
    from benchmarks.gpu_runs import Graph, differences

    batches, seconds = (QUICK_BATCHES, 0.1) if is_quick else (BATCHES, 0.3)
    gpu = GpuUse(maximum_batch_size=batches[-1], engines=folder / "tensorrt")
    graphs = {one: Graph(architecture, files[one], providers, gpu, threads=1) for one in PRECISIONS}
    found: Row = {
        "architecture": architecture.name,
        "edge": architecture.edge,
        "providers": list(providers),
        "provider": graphs[FLOAT32].classifier.provider,
        "decoded_per_second_and_core": decoded,
        "logit_differences": differences(graphs, float32=FLOAT32, half=HALF),
    }
    for precision, graph in graphs.items():
        rows = [graph.measure(batch, seconds, with_defaults=batch in DEFAULTS_BATCHES) for batch in batches]
        changing = graph.changing_sizes(batches, 4 * seconds)
        found[precision] = {"batches": rows, "changing_sizes": changing}
        print(f"\n{architecture.name} at {architecture.edge}, {precision}, {found['provider']}\n{HEADER}")
        for row in rows:
            print(_line(row))
        rates = ", ".join(f"{name} {rate:,.0f} images/s" for name, rate in changing.items())
        print(f"size of the batch changes with every run: {rates}")
        print(_ceiling(rows[-1], decoded))
    said = ", ".join(f"{name} {value:.2g}" for name, value in found["logit_differences"].items())
    print(f"largest differences of a logit from float32 without TF32, beside the range of logits: {said}")
    return found


def _service(
    architecture: Architecture, folder: Path, providers: Sequence[str], *, is_quick: bool
) -> list[Row]:
    from benchmarks.gpu_service import measure_service

    files = architecture.files(folder)
    cases = [(1, 4)] if is_quick else [(1, 16), (8, 128), (14, 256)]
    rows: list[Row] = []
    print(
        "\n| precision | workers | connections | images/s | p50 ms | p99 ms | faults |\n|---|---|---|---|---|---|---|"
    )
    for precision in (FLOAT32,) if is_quick else PRECISIONS:
        for workers, connections in cases:
            row = {"precision": precision} | measure_service(
                architecture,
                files[precision],
                providers=providers,
                workers=workers,
                connections=connections,
                source_edge=SOURCE_EDGE,
                seconds=1.0 if is_quick else 5.0,
            )
            rows.append(row)
            print(
                f"| {precision} | {workers} | {connections} | {row['images_per_second']:,.0f} | {row['p50_ms']:.1f} |"
                f" {row['p99_ms']:.1f} | {row['faults']} |",
                flush=True,
            )
    return rows


def _line(row: Row) -> str:
    def rate(name: str) -> str:
        return f"{row[name]['images_per_second']:,.0f}" if name in row else "-"

    cells = [str(row["batch"])]
    for name in ("ours", "session"):
        cells += [rate(name), f"{row[name]['p99_ms']:.2f}"]
    cells += [rate(name) for name in OTHER_ARMS]
    ratio = row["ours"]["images_per_second"] / row["session"]["images_per_second"]
    return f"| {' | '.join(cells)} | {ratio:.2f} |"


def _ceiling(row: Row, decoded: float) -> str:
    """The part of the path with the lowest rate; one core decodes."""
    rates = {name: row[name]["images_per_second"] for name in ("kernel", "copy", "stack")}
    lowest = min(rates, key=lambda name: rates[name])
    cores = rates["kernel"] / decoded
    return (
        f"of kernel, copy and stack, {lowest} is the slowest ({rates[lowest]:,.0f} images/s); one core decodes"
        f" {decoded:,.0f} images/s, so {cores:.1f} cores decode as fast as the kernel computes"
    )


def _providers(name: str, *, with_tensorrt: bool) -> list[list[str]]:
    """Lists of providers to measure.

    Raises:
        ConfigurationError: one cannot be used here; the message names what is missing.
    """
    from lifelong_service.graphs.providers import choose_providers

    lists = [[name]] if name == CPU else [[name, CPU]]
    if with_tensorrt:
        lists.append([TENSORRT, CUDA, CPU])
    for one in lists:
        choose_providers(one)
    return lists


def _check_packages(models: Path | None, architectures: Sequence[Architecture]) -> None:
    """Check that missing graphs can be exported.

    Raises:
        LifelongError: a package is missing.
    """
    needed = ["psutil", "onnxruntime", "onnx", "bentoml"]
    has_graphs = models is not None and all(
        (models / f"{one.name}-{one.edge}-{precision}.onnx").is_file()
        for one in architectures
        for precision in PRECISIONS
    )
    if not has_graphs:
        needed += ["torch", "torchvision", "timm", "onnxscript"]
    missing = [package for package in needed if importlib.util.find_spec(package) is None]
    if missing:
        raise LifelongError(f"packages are missing: {', '.join(missing)}. See `pydoc benchmarks.gpu`.")


def _machine() -> dict[str, Any]:
    installed = [
        one
        for one in ("onnxruntime-gpu", "onnxruntime", "torch", "timm", "nvidia-cudnn-cu13", "bentoml")
        if _is_installed(one)
    ]
    return describe(*installed) | {"gpu": _gpu()}


def _is_installed(package: str) -> bool:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def _gpu() -> str:
    """Name, memory and driver of the GPU, as nvidia-smi shows them."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return "no nvidia-smi"
    query = [program, "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    shown = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    return shown.stdout.strip().replace("\n", "; ") or "nvidia-smi shows no GPU"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--quick", action="store_true", help="small models, two batch sizes, short times")
    parser.add_argument("--provider", default=CUDA, help="execution provider of ONNX Runtime")
    parser.add_argument("--tensorrt", action="store_true", help="measure TensorRT, too")
    parser.add_argument("--no-service", dest="service", action="store_false", help="leave out the service")
    parser.add_argument("--models", type=Path, help="folder of the exported graphs, which stay there")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
