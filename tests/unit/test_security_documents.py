"""References of the pages about security exist: tests, attacks, settings, anchors of other pages."""

import re
from pathlib import Path

import pytest

from lifelong_core.configuration.settings import OTHER_VARIABLES, Settings
from tests.attacks.__main__ import ATTACKS

ROOT = Path(__file__).parents[2]
PAGES = ("docs/security.md", "docs/threat-model.md")


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_refers_to_exists(name: str):
    text = page(name)
    paths = re.findall(r"`((?:tests|service|supply_chain)/[\w/.-]+)`", text)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    settings = {f"LIFELONG_{field.upper()}" for field in Settings.model_fields} | OTHER_VARIABLES
    named = {one.split("__")[0] for one in re.findall(r"LIFELONG_[A-Z_]+", text)}
    assert named - settings == set()
    for target, anchor in re.findall(r"\]\((?!http)([^)#]*)#([^)]+)\)", text):
        assert anchor in anchors((ROOT / name).parent / target if target else ROOT / name), (target, anchor)
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert ((ROOT / name).parent / target).exists(), target


def test_attacks_of_the_threat_model_exist():
    named = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"attacks? (`\w+`(?:, `\w+`)*)", page(PAGES[1])))))
    assert named
    assert named <= ATTACKS.keys()
    assert ATTACKS.keys() <= named, "name the new attack in docs/threat-model.md"
