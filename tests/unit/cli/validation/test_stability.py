"""`lifelong stability` on files and folders, as a person calls it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.develop.localization.classifier_stability import (
    ClassifierStability,
    classifier_stability,
)
from lifelong_core.values.errors import InvalidInputError

LABELS = [1, 0, 1, 1, 1, 0]


@pytest.fixture(autouse=True)
def maps(tmp_path, monkeypatch):
    """Maps of three classifiers as arrays, and of two of them as folders."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = rng.random((6, 4, 4))
    made = {f"seed-{k}": np.clip(truth + rng.normal(0, 0.2, truth.shape), 0, 1) for k in range(3)}
    for name, array in made.items():
        np.save(f"{name}.npy", array)
    for name in ("seed-0", "seed-1"):
        Path(name).mkdir()
        for image, array in enumerate(made[name]):
            if image % 2:
                np.save(f"{name}/im{image}.npy", array)
            else:
                np.savez(f"{name}/im{image}.npz", maps=array)
    np.savez("seed-1.npz", maps=made["seed-1"], other=np.zeros(2))
    np.save("labels.npy", np.array(LABELS))
    rows = "".join(f"im{image}.npy,{label}\n" for image, label in reversed(list(enumerate(LABELS))))
    Path("labels.csv").write_text(f"file,label\n{rows}")
    return made


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["stability", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_it_is_what_the_library_finds(maps):
    found = ClassifierStability.from_json(
        run("seed-0.npy", "seed-1.npz", "seed-2.npy", "--labels", "labels.npy", "--json")
    )
    assert found == classifier_stability(maps, LABELS)


def test_folders_are_read_by_the_names_of_images(maps):
    found = json.loads(run("old=seed-0", "new=seed-1", "--labels", "labels.csv", "--json"))
    expected = classifier_stability({"old": maps["seed-0"], "new": maps["seed-1"]}, LABELS)
    assert found["scores"] == expected.to_document()["scores"]
    assert [one["name"] for one in found["by_image"]] == ["im0", "im2", "im3", "im4"]


def test_a_person_reads_tables():
    said = run("seed-0.npy", "seed-1.npy", "seed-2.npy")
    assert said.startswith("Stability of 3 classifiers, 3 pairs; all 6 images count, as no --labels say")
    for part in ("adjusted Jaccard (kappa)", "undefined", "seed-0  seed-2", "Caution: "):
        assert part in said
    assert "2 pairs" not in run("seed-0.npy", "seed-1.npy")


def test_equal_names_are_told_apart():
    for folder in ("a", "b"):
        Path(folder).mkdir()
        np.save(f"{folder}/maps.npy", np.eye(2)[np.newaxis])
    found = json.loads(run("a/maps.npy", "b/maps.npy", "--json"))
    assert found["classifiers"] == ["a/maps", "b/maps"]


def test_the_report_is_one_page_with_plots(maps):
    run("seed-0.npy", "<i>=seed-1.npy", "seed-2.npy", "--labels", "labels.npy", "--html", "out/report.html")
    page = Path("out/report.html").read_text()
    assert "4 positive images of 6 count" in page
    assert page.count("<svg") > 20
    assert "<i>" not in page.partition('type="application/json"')[0]
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", page)
    embedded = re.search(r'<script type="application/json" id="document">(.*?)</script>', page, re.S)
    assert json.loads(embedded[1])["positive_images"] == 4


def test_a_report_without_any_defined_score():
    for name in "ab":
        np.save(f"{name}.npy", np.zeros((2, 3, 3)))
    assert "undefined" in run("a.npy", "b.npy", "--html", "empty.html")
    assert "Localization stability of 2 classifiers" in Path("empty.html").read_text()


def test_errors_name_file_and_field() -> None:
    np.savez("two.npz", a=np.zeros((6, 4, 4)), b=np.zeros((6, 4, 4)))
    for folder in ("empty", "fewer", "twice"):
        Path(folder).mkdir()
    np.save("fewer/im0.npy", np.zeros((4, 4)))
    for suffix in (".npy", ".npz"):
        Path(f"twice/im0{suffix}").write_bytes(Path("two.npz").read_bytes())
    Path("short.csv").write_text("file,label\nim0,1\n")
    Path("wrong.csv").write_text("file,label\n" + "".join(f"im{image},yes\n" for image in range(6)))
    for arguments, message in (
        (["seed-0.npy", "labels.npy"], "labels: labels.npy: expected shape .images, height, width."),
        (["seed-0.npy", "labels.csv"], "labels: labels.csv is no npy or npz file"),
        (["seed-0.npy", "two.npz"], "two: two.npz: expected the array maps, or one array only"),
        (["seed-0.npy", "empty"], "empty: empty has no npy or npz file"),
        (["seed-0", "fewer"], "fewer: only seed-0 has a map of im1"),
        (["seed-0", "twice"], "twice: twice has two files of one image"),
        (["seed-0.npy", "seed-1.npy", "--labels", "labels.csv"], "--labels: labels.csv: a CSV file needs"),
        (["seed-0", "seed-1", "--labels", "short.csv"], "--labels: short.csv has no label for im1"),
        (
            ["seed-0", "seed-1", "--labels", "wrong.csv"],
            "--labels: wrong.csv: expected 0 or 1 for im0, got 'yes'",
        ),
    ):
        with pytest.raises(InvalidInputError, match=message):
            CliRunner().invoke(cli, ["stability", *arguments], catch_exceptions=False)


def test_wrong_calls_say_what_is_wrong() -> None:
    for arguments, message in (
        (["seed-0.npy"], "at least two classifiers"),
        (["seed-0.npy", "no.npy"], "there is no file or folder 'no.npy'"),
        (["a=seed-0.npy", "a=seed-1.npy"], "two classifiers have the name a"),
    ):
        result = CliRunner().invoke(cli, ["stability", *arguments])
        assert result.exit_code == 2
        assert message in result.output


def test_help_shows_the_formats():
    shown = " ".join(run("--help").split())
    for part in ("npy file (images, height, width)", "--labels", "--html", "old=maps-old/"):
        assert part in shown


def test_names_are_no_commands_to_the_terminal():
    said = run("a\x1b[31m=seed-0.npy", "b=seed-1.npz", "c=seed-2.npy")
    assert "\x1b" not in said
    assert r"a\x1b[31m" in said
