"""Links between the pages resolve, settings, files and folders that they name exist, and their lists are complete."""

import re
from pathlib import Path

import pytest

from lifelong_core.configuration.settings import OTHER_VARIABLES, PolicySettings, Settings
from lifelong_core.doctor.examination import CHECKS
from lifelong_monitor.jobs.running.work import KINDS
from tests.faults import figures
from tests.faults.report import render

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def anchors(page: Path) -> set[str]:
    """Of the headings outside of code, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_pages_and_headings_resolve(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)\s#]*)(?:#([^)\s]+))?\)", page.read_text(encoding="utf-8"))
    broken = [
        f"{target}#{anchor}"
        for target, anchor in links
        if not (file := (page.parent / target) if target else page).exists()
        or (anchor and anchor not in anchors(file))
    ]
    assert not broken


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name
)
def test_settings_that_a_page_names_exist(page: Path) -> None:
    known = {f"LIFELONG_{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
    policy = {f"LIFELONG_POLICY__{name.upper()}" for name in PolicySettings.model_fields}
    named = set(re.findall(r"LIFELONG_[A-Z0-9_]*[A-Z0-9]", page.read_text(encoding="utf-8")))
    assert {name for name in named if name not in known | policy} == set()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name
)
def test_files_and_folders_that_a_page_names_exist(page: Path) -> None:
    folders = "lifelong_core|lifelong|service|monitor|grafana|supply_chain|benchmarks|tests|docs"
    named = re.findall(rf"`((?:{folders})/[\w./-]+)`", page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_operating_names_every_check_and_every_kind_of_job() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    table = page.partition("| check | finds |")[2].partition("\n\n")[0]
    checks = {name for row in re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE) for name in row.split(", ")}
    assert checks == {"settings", "database", *CHECKS}
    jobs = page.partition("## Jobs")[2].partition("\n## ")[0]
    assert [kind for kind in KINDS if f"`{kind}`" not in jobs] == []


def test_the_page_of_the_figures_of_faults_is_what_their_next_run_writes() -> None:
    written = render(figures.read(ROOT / "docs" / "reliability.json"))
    assert (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8") == written
