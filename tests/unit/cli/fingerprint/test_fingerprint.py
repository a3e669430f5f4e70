"""`lifelong fingerprint`: from images to files, distances and the knowledge base."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes
from lifelong_core.develop.knowledge.entry import TaskCard
from lifelong_core.values.errors import InvalidInputError, NotFoundError
from tests.unit.develop.features.drawn import ARCHITECTURE, EDGE, draw_images, write_weights


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images, weights, the extractor reference, and fingerprints of two tasks."""
    folder = tmp_path_factory.mktemp("fingerprints")
    draw_images(folder / "one", 30, classes=("ill", "well"))
    draw_images(folder / "two", 30, seed=1, classes=("ill", "well"))
    write_weights(folder / "weights.pth")
    reference = ["fingerprint", "extractor", "make", "--architecture", ARCHITECTURE, "--edge", str(EDGE)]
    run(
        folder,
        *reference,
        "--weights",
        "weights.pth",
        "one",
        "two",
        "--output",
        "x.npz",
    )
    for name in ("one", "two"):
        make(folder, name, "--output", f"{name}.npz")
    return folder


def run(folder: Path, *arguments: str) -> str:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def make(folder: Path, *arguments: str) -> str:
    shared = ("--extractor", "x.npz", "--weights", "weights.pth", "--device", "cpu")
    return run(folder, "fingerprint", "make", *shared, *arguments)


def test_the_reference_shows_what_it_is_made_of(folder: Path) -> None:
    shown = json.loads(run(folder, "fingerprint", "extractor", "show", "x.npz", "--json"))
    assert (shown["architecture"], shown["features"], shown["reference_images"]) == (ARCHITECTURE, 96, 60)
    assert shown["reference_names"] == ["one", "two"]
    text = run(folder, "fingerprint", "extractor", "show", "x.npz")
    assert shown["digest"] in text
    assert "rgb, scaled to 32 x 32" in text


def test_a_task_card_has_the_facts_of_the_images(folder: Path) -> None:
    text = make(
        folder, "one", "--card", "card.json", "--name", "drawn", "--keyword", "blob", "--output", "carded.npz"
    )
    card = TaskCard.from_json((folder / "card.json").read_bytes())
    assert (card.name, card.classes, card.samples, card.keywords) == ("drawn", 2, 30, ("blob",))
    assert "Read 30 of 30 images" in text
    assert "Classes: 2, imbalance 1." in text
    assert (folder / "carded.npz").read_bytes() == (folder / "one.npz").read_bytes()


def test_json_reports_unreadable_images(folder: Path, tmp_path: Path) -> None:
    draw_images(tmp_path, 40)
    (tmp_path / "0000.png").write_bytes(b"broken")
    found = json.loads(make(folder, str(tmp_path), "--output", "broken.npz", "--json"))
    assert found["report"]["unreadable"] == 1
    assert found["report"]["unreadable_examples"][0]["name"] == "0000.png"
    assert found["bytes"] == (folder / "broken.npz").stat().st_size
    text = make(folder, str(tmp_path), "--output", "broken.npz", "--replace")
    assert "  0000.png: this is not an image that can be read." in text


def test_methods_decide_the_kind(folder: Path) -> None:
    make(folder, "one", "--method", "FID", "--output", "fid.npz")
    assert fingerprint_from_bytes((folder / "fid.npz").read_bytes()).kind == "gaussian"
    make(folder, "one", "--method", "bKLD(large,source)", "--output", "large.npz")
    assert json.loads(run(folder, "fingerprint", "show", "large.npz", "--json"))["bins"] == 1000


def test_keywords_need_no_images(folder: Path) -> None:
    given = ("--keyword", "Polyp", "--keyword", "colon", "--output", "manual.npz")
    run(folder, "fingerprint", "make", "--method", "Manual", *given)
    assert json.loads(run(folder, "fingerprint", "show", "manual.npz", "--json"))["keywords"] == [
        "colon",
        "polyp",
    ]


def test_the_closest_source_comes_first(folder: Path) -> None:
    rows = json.loads(run(folder, "fingerprint", "compare", "one.npz", "two.npz", "one.npz", "--json"))
    assert [row["source"] for row in rows] == ["one.npz", "two.npz"]
    assert list(rows[0])[:2] == ["source", "bKLD(small,target)"]
    assert {"VDNA", "P2L"} < rows[0].keys()
    assert "bKLD(large,source)" not in rows[0]
    assert rows[0]["VDNA"] == 0
    table = run(folder, "fingerprint", "compare", "one.npz", "two.npz", "--method", "VDNA")
    assert table.splitlines()[0].split() == ["source", "VDNA"]


def test_a_fingerprint_says_what_it_discloses(folder: Path) -> None:
    found = json.loads(run(folder, "fingerprint", "show", "one.npz", "--json"))
    assert (found["kind"], found["samples"], found["bins"], found["features"]) == ("histogram", 30, 100, 96)
    assert found["disclosure"]["smallest_occupied_bin"] >= 1
    text = run(folder, "fingerprint", "show", "one.npz")
    assert "- It holds the histograms and means of 96 features of 30 images." in text
    assert "- It describes single images: it is of 30 images, and needs at least 100" in text


def test_a_private_copy_has_noise_and_says_so(folder: Path) -> None:
    given = ("one.npz", "--extractor", "x.npz", "--epsilon", "4", "--images-per-patient", "2")
    run(folder, "fingerprint", "make-private", *given, "--output", "private.npz")
    shown = json.loads(run(folder, "fingerprint", "show", "private.npz", "--json"))
    assert shown["disclosure"]["privacy"] == {"epsilon": 4.0, "delta": 1e-6, "images_per_patient": 2}
    compared = json.loads(run(folder, "fingerprint", "compare", "private.npz", "one.npz", "--json"))
    assert compared[0]["VDNA"] > 0


def test_fingerprints_of_other_extractors_are_not_compared(folder: Path) -> None:
    reference = ["fingerprint", "extractor", "make", "--architecture", ARCHITECTURE, "--edge", str(EDGE)]
    run(folder, *reference, "one", "--weights", "weights.pth", "--output", "y.npz")
    run(
        folder,
        "fingerprint",
        "make",
        "one",
        "--extractor",
        "y.npz",
        "--weights",
        "weights.pth",
        "--output",
        "other.npz",
    )
    with pytest.raises(InvalidInputError, match="different extractors"):
        run(folder, "fingerprint", "compare", "one.npz", "other.npz")


def test_an_existing_output_is_kept(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="exists already"):
        make(folder, "one", "--output", "one.npz")


def test_wrong_options_are_named(folder: Path) -> None:
    for arguments, field in (
        (("--output", "a.npz"), "IMAGES"),
        (("one", "--output", "missing/a.npz"), "--output"),
        (("one", "--card", "c.json", "--output", "a.npz"), "--card"),
        (("one", "--pretrained", "--output", "a.npz"), "--weights"),
        (("one", "--method", "bKLD", "--output", "a.npz"), "method"),
        (("one", "--method", "Manual", "--output", "a.npz"), "--keyword"),
    ):
        with pytest.raises(InvalidInputError) as raised:
            make(folder, *arguments)
        assert raised.value.field == field


def test_other_files_are_refused(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"weights\.pth.*fingerprint make wrote"):
        run(folder, "fingerprint", "show", "weights.pth")
    with pytest.raises(InvalidInputError, match=r"one\.npz.*extractor make wrote"):
        run(folder, "fingerprint", "extractor", "show", "one.npz")


def test_a_fingerprint_goes_through_the_knowledge_base(folder: Path, installed: Callable[..., str]) -> None:
    installed("tasks", "add", "drawn", "--classes", "ill,well")
    installed("fingerprint", "import", str(folder / "one.npz"), "--task", "drawn")
    installed("fingerprint", "export", "drawn", "--output", "copy.npz")
    assert Path("copy.npz").read_bytes() == (folder / "one.npz").read_bytes()
    installed("fingerprint", "import", str(folder / "one.npz"), "--task", "drawn")
    make(folder, "one", "--method", "EMD", "--output", "features.npz", "--replace")
    installed("fingerprint", "import", str(folder / "features.npz"), "--task", "drawn")
    with pytest.raises(InvalidInputError, match="several fingerprints: histogram of 100 bins; features"):
        installed("fingerprint", "export", "drawn", "--output", "again.npz")
    chosen = ("fingerprint", "export", "drawn", "--kind", "features", "--output", "again.npz")
    with pytest.raises(InvalidInputError, match="can identify them"):
        installed(*chosen)
    installed(*chosen, "--unshareable")
    with pytest.raises(NotFoundError, match="no such fingerprint"):
        installed("fingerprint", "export", "drawn", "--bins", "7", "--output", "none.npz")


def test_a_card_enters_a_new_task_with_its_fingerprint(folder: Path, installed: Callable[..., str]) -> None:
    card = folder / "new.json"
    make(folder, "one", "--name", "new", "--card", str(card), "--output", "new.npz", "--replace")
    said = installed("fingerprint", "import", str(folder / "new.npz"), "--card", str(card))
    assert "of new" in said
    entry = json.loads(installed("knowledge", "show", "new", "--json"))
    assert entry["entry"]["card"] == json.loads(card.read_text())
    assert len(entry["fingerprints"]) == 1
    with pytest.raises(InvalidInputError, match="the card is of new"):
        installed("fingerprint", "import", str(folder / "new.npz"), "--card", str(card), "--task", "other")
    with pytest.raises(InvalidInputError, match="name the task"):
        installed("fingerprint", "import", str(folder / "new.npz"))
