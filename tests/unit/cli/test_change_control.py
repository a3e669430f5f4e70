"""`lifelong dossier` and `lifelong report` on an installation whose population nobody adapted."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import ImageFile

from lifelong.commands.common import open_store
from lifelong_core.change_control import pdf
from lifelong_core.values.errors import ConfigurationError, InvalidInputError


@pytest.fixture
def run(installed: Callable[..., str]) -> Callable[..., str]:
    with open_store() as store:
        store.tasks.add("skin", ("benign", "malignant"), [[0, 1], [1, 0]], actor="test")
        store.models.add("skin", "skin", kind="external", actor="test")
        store.environments.ensure("site-a", limit=9)
    return installed


def test_a_page_goes_to_the_folder_and_says_that_nothing_changed(
    run: Callable[..., str], tmp_path: Path
) -> None:
    assert run("dossier", "skin", "site-a") == "Wrote dossier-skin-site-a.html\n"
    page = (tmp_path / "dossier-skin-site-a.html").read_text()
    assert "The head did not change in the period." in page
    assert "models.add" in page


def test_both_files_are_written_where_they_are_asked_for(run: Callable[..., str], tmp_path: Path) -> None:
    run("report", "skin", "site-a", "--month", "2026-10", "--html", "a.html", "--pdf", "a.pdf")
    assert "No prediction." in (tmp_path / "a.html").read_text()
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert not ImageFile.LOAD_TRUNCATED_IMAGES, "a library may not switch off a check of images"


def test_json_writes_no_file_and_a_false_month_is_named(run: Callable[..., str], tmp_path: Path) -> None:
    document = json.loads(run("report", "skin", "site-a", "--month", "2026-10", "--json"))
    assert (document["since"], document["until"]) == (
        "2026-10-01T00:00:00+00:00",
        "2026-11-01T00:00:00+00:00",
    )
    assert not list(tmp_path.glob("*.html"))
    with pytest.raises(InvalidInputError, match="month"):
        run("report", "skin", "site-a", "--month", "2026-13")


def test_a_missing_library_is_named(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(pdf, "import_module", missing)
    with pytest.raises(ConfigurationError, match="needs WeasyPrint") as raised:
        run("dossier", "skin", "site-a", "--pdf", "a.pdf")
    assert "--html FILE" in str(raised.value.hint)
