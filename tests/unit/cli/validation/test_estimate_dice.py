"""`lifelong estimate-dice` on folders of files, as a person calls it."""

import io
import json
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong.commands.validation.estimate_dice import METHODS
from lifelong.segmentation_files import read_cases
from lifelong_core.deploy.performance.segmentation import DICE_METHODS, DiceEstimate, estimate_dice
from lifelong_core.deploy.performance.segmentation.cases import BLOCK_PIXELS
from lifelong_core.values.errors import InvalidInputError
from tests.unit.deploy.performance.segmentation.examples import draw_cases
from tests.unit.deploy.performance.segmentation.transcription import softmax


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch) -> None:
    """Twelve labelled cases and ten maps of three classes: probabilities, stored and compressed."""
    monkeypatch.chdir(tmp_path)
    for folder, seed, count in (("calibration", 1, 12), ("maps", 2, 10)):
        Path(folder).mkdir()
        for number, case in enumerate(draw_cases(count, seed, classes=3)):
            probabilities = softmax(case.scores).astype(np.float32)
            save = np.savez if number % 2 else np.savez_compressed
            save(
                f"{folder}/{number:02}.npz", probabilities=probabilities, labels=case.labels.astype(np.uint8)
            )


def run(*options: str) -> str:
    arguments = ["estimate-dice", "calibration", "maps", "--replicates", "20", *options]
    result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_what_the_library_estimates():
    cases, maps = draw_cases(12, 1, classes=3), draw_cases(10, 2, classes=3)
    expected = estimate_dice(cases, maps, method="CS-TS", replicates=20)
    found = DiceEstimate.from_document(json.loads(run("--method", "CS-TS", "--json")))
    for one, other in zip(found.classes, expected.classes, strict=True):
        assert one.value == pytest.approx(other.value, abs=1e-5)


def test_a_person_reads_a_table():
    said = run("--classes", "background,lesion,vessel")
    assert said.startswith("Dice by CS-ATC: 10 maps, 12 calibration cases, 95 % intervals\n")
    for part in ("lesion", "vessel", "mean without background", " to ", "Assumes: One threshold"):
        assert part in said


def test_a_class_that_no_case_contains_has_no_numbers():
    for file in Path().glob("*/*.npz"):
        arrays = dict(np.load(file))
        probabilities = arrays["probabilities"] * np.array([1, 1, 0], dtype=np.float32)[:, None, None]
        np.savez(
            file, probabilities=probabilities / probabilities.sum(axis=0), labels=arrays["labels"].clip(0, 1)
        )
    (row,) = (line for line in run().splitlines() if line.startswith("class 2"))
    assert row.split() == ["class", "2", "0", "10", "0"]  # numbers of maps and cases only


def test_the_estimate_is_written_before_it_is_printed():
    printed = run("--output", "found/estimate.json", "--json")
    assert json.loads(Path("found/estimate.json").read_text()) == json.loads(printed)
    Path("file").write_text("")
    with pytest.raises(InvalidInputError, match="cannot be written"):
        run("--output", "file/estimate.json")


def test_logits_npy_files_and_groups_are_read():
    for path in Path("maps").iterdir():
        with np.load(path) as arrays:
            np.save(path.with_suffix(".npy"), arrays["probabilities"])
        path.unlink()
    for path in Path("calibration").iterdir():
        with np.load(path) as arrays:
            np.savez(path, logits=np.log(arrays["probabilities"]), labels=arrays["labels"])
    rows = "".join(f"{number:02}.npz,patient {number // 6}\n" for number in range(12))
    Path("calibration/groups.csv").write_text(f"file,group\n{rows}")
    said = run()
    assert "Caution: 2 independent calibration cases" in said
    Path("calibration/groups.csv").write_text("file,group\n00.npz,a\n")
    with pytest.raises(InvalidInputError, match=r"no group for 01\.npz"):
        run()


def test_files_are_read_in_blocks(monkeypatch):
    whole = json.loads(run("--method", "CS-TS-ATC", "--json"))
    monkeypatch.setattr("lifelong.segmentation_files.BLOCK_PIXELS", 11)
    (first, *_) = read_cases(Path("maps"), labelled=False, field="MAPS")
    assert {block.scores.shape[1] for block in first.blocks()} == {11, 24 * 20 % 11}
    found = json.loads(run("--method", "CS-TS-ATC", "--json"))
    assert found["classes"][1]["value"] == pytest.approx(whole["classes"][1]["value"], abs=1e-5)


def test_memory_does_not_grow_with_the_pixels():
    peaks: list[int] = []
    for name, pixels in (("small", 4 * BLOCK_PIXELS), ("large", 32 * BLOCK_PIXELS)):
        logits = np.random.default_rng(0).normal(size=(2, pixels)).astype(np.float16)
        Path(name).mkdir()
        np.savez_compressed(
            f"{name}/volume.npz", logits=logits, labels=logits.argmax(axis=0).astype(np.uint8)
        )
        tracemalloc.start()
        cases = read_cases(Path(name), labelled=True, field="CALIBRATION")
        estimate_dice(cases, cases, replicates=2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def npy(header: bytes, content: bytes = b"", length: int | None = None) -> bytes:
    return (
        b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header) if length is None else length) + header + content
    )


def archive(**entries: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in entries.items():
            made.writestr(f"{name}.npy", content)
    return file.getvalue()


def arrays(**given) -> bytes:
    file = io.BytesIO()
    np.savez(file, **given)
    return file.getvalue()


HALF = np.full((3, 4, 5), 1 / 3, np.float32)
HUGE = b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1000000, 1000000)}\n"
BROKEN = {
    "empty": (b"", "no file of arrays"),
    "text": (b"probabilities", "no file of arrays"),
    "damaged": (arrays(probabilities=HALF)[:-60], "no file of arrays"),
    "pickled objects": (arrays(probabilities=np.array([{}, None], dtype=object)), "floating-point"),
    "nothing": (arrays(other=HALF), "neither probabilities nor logits"),
    "both": (arrays(probabilities=HALF, logits=HALF), "both probabilities and logits"),
    "order": (arrays(probabilities=np.asfortranarray(HALF)), "order of C"),
    "sum": (arrays(probabilities=HALF / 2), "sum to 0.5"),
    "class last": (
        arrays(probabilities=np.moveaxis(HALF, 0, -1).copy()),
        "expected 3 classes",
    ),
    "nan": (arrays(probabilities=np.full_like(HALF, np.nan)), "not a finite"),
    "integers": (arrays(probabilities=np.ones((3, 4, 5), int)), "floating-point"),
    "one class": (arrays(probabilities=np.ones((1, 4, 5))), "2 to 64 classes"),
    "another number of classes": (arrays(probabilities=np.full((2, 4, 5), 0.5)), "expected 3 classes"),
    "a huge shape": (archive(probabilities=npy(HUGE)), "does not fit"),
    "a huge header": (archive(probabilities=npy(b" " * 50_000)), "npy format"),
    "a header without an end": (archive(probabilities=npy(HUGE, length=2**32 - 1)), "npy format"),
    "no npy": (archive(probabilities=b"1,2,3"), "npy format"),
    "negative shape": (
        archive(
            probabilities=npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (3, -1, -1)}\n", bytes(12))
        ),
        "at least one pixel",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_file_is_named(kind):
    content, told = BROKEN[kind]
    Path("maps/03.npz").write_bytes(content)
    with pytest.raises(InvalidInputError, match=told) as refused:
        run()
    assert "maps/03.npz" in refused.value.message
    assert refused.value.hint
    assert "\n" not in str(refused.value)


def test_wrong_numbers_after_a_good_header_are_an_input_error():
    """Damage within compressed numbers is noticed while they are read."""
    content = bytearray(Path("calibration/02.npz").read_bytes())
    content[300] ^= 0xFF
    Path("calibration/02.npz").write_bytes(content)
    with pytest.raises(InvalidInputError, match=r"calibration/02\.npz"):
        run()


def test_wrong_labels_are_named() -> None:
    for labels, told in (
        (None, "lacks the array labels"),
        (np.zeros((5, 4), np.uint8), "expected whole numbers of shape"),
        (np.zeros((4, 5)), "expected whole numbers of shape"),
        (np.full((4, 5), 255, np.uint8), r"classes in 0\.\.2, got 255"),
    ):
        given = {} if labels is None else {"labels": labels}
        Path("calibration/03.npz").write_bytes(arrays(probabilities=HALF, **given))
        with pytest.raises(InvalidInputError, match=told) as refused:
            run()
        assert "calibration/03.npz" in refused.value.message


def test_an_error_is_one_line():
    Path("empty").mkdir()
    command = [sys.executable, "-m", "lifelong", "estimate-dice", "calibration", "empty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: MAPS: empty has no file that ends in .npz or .npy.")
    assert done.stderr.count("\n") == 1


def test_options_are_checked():
    assert list(METHODS) == list(DICE_METHODS)
    with pytest.raises(InvalidInputError, match="expected 3 names, got 2"):
        run("--classes", "a,b")
    with pytest.raises(InvalidInputError, match="background"):
        run("--background", "3")
