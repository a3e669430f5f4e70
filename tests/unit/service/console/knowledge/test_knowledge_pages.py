"""The pages of the knowledge base over HTTP."""

import html
import re
from collections.abc import Callable

import pytest
import sqlalchemy as sa

from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.ranking.fitting import fit_ranker
from lifelong_core.develop.ranking.rank_sources import rank_sources
from lifelong_core.develop.ranking.ranker import FittedRanker
from lifelong_core.store.schema import tables
from lifelong_service.console.knowledge import pages
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console
from tests.unit.store.knowledge_samples import make_base, make_entry, make_histogram


@pytest.fixture
def console(serve: Callable[..., Service]) -> Console:
    return Console(serve(), scope="read")


def add(console: Console, *names: str, samples: int = 100, sources: tuple[str, ...] = ()) -> None:
    entries = [make_entry(name, samples=samples, sources=sources) for name in names]
    console.service.store.knowledge.import_base(KnowledgeBase.from_entries(entries), actor="ann")


def names_of(page: str) -> list[str]:
    return re.findall(r'<th scope="row"><a href="/console/knowledge/([^"]+)">', page)


def test_an_empty_knowledge_base_says_how_to_fill_it(console: Console) -> None:
    page = console.get("/console/knowledge").text
    assert "There is no task yet." in page
    assert "lifelong knowledge import" in page


def test_tasks_are_listed_by_name_in_pages(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST", 3)
    add(console, *(f"task_{n}" for n in range(7)))
    address, seen, page = "/console/knowledge", [], ""
    while address:
        page = console.get(address).text
        seen.append(names_of(page))
        later = re.search(r'<a href="([^"]+)" rel="next">', page)
        address = html.unescape(later[1]) if later else ""
    assert seen == [["task_0", "task_1", "task_2"], ["task_3", "task_4", "task_5"], ["task_6"]]
    assert "7 tasks with 0 fingerprints" in " ".join(page.split())
    assert 'href="/console/knowledge">First page</a>' in page


def test_tasks_are_searched_by_name(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST", 1)
    add(console, "a_b", "a_c", "axb")
    found = console.get("/console/knowledge?search=A_").text
    assert names_of(found) == ["a_b"]  # the underscore is no wildcard
    assert 'href="/console/knowledge?search=A_&amp;after=a_b" rel="next"' in found
    assert names_of(console.get("/console/knowledge?search=A_&after=a_b").text) == ["a_c"]
    assert "No name contains <strong>&lt;b&gt;</strong>." in console.get("/console/knowledge?search=<b>").text


def test_a_task_is_shown_with_its_card_origin_fingerprints_and_trainings(console: Console) -> None:
    add(console, "moles", sources=("nevi", "svhn"), samples=1234)
    console.service.store.knowledge.put_fingerprint("moles", make_histogram(), actor="ann")
    assert names_of(console.get("/console/knowledge").text) == ["moles"]
    page = html.unescape(console.get("/console/knowledge/moles").text)
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd>(?:<[^>]+>)?([^<]*)", page))
    assert facts["Images"] == "20"  # of the fingerprint; those of the card come first
    assert re.search(r"<dt>Images</dt><dd>1,234</dd>", page)
    assert facts["Modality"] == "dermatoscopy"
    assert facts["Licence"] == "CC0-1.0"
    assert facts["Contact"] == "a@clinic.example"
    assert facts["From"] == "local"
    assert facts["Bins"] == "8 of each feature"
    assert "occupied bins hold one image" in page
    assert "describes single images" not in page
    assert "Trainings (3)" in page
    rows = re.findall(r'<th scope="row">(.*?)</th>\s*(.*?)</tr>', page, re.DOTALL)
    assert [(name, re.findall(r">([^<]+)</td>", cells)) for name, cells in rows] == [
        ("Without transfer", ["all", "1", "0", "0.710 (0.700 to 0.720)"]),
        ("Pretraining", ["all", "2", "2", "0.777 (0.750 to 0.800)"]),
    ]


def test_a_damaged_entry_stays_in_the_list_and_hides_no_other(console: Console) -> None:
    add(console, "moles", "nevi")
    with console.service.store.database.write() as connection:
        rows = tables.knowledge_entries
        connection.execute(sa.update(rows).where(rows.c.task == "moles").values(document="{}"))
    page = console.get("/console/knowledge").text
    assert names_of(page) == ["moles", "nevi"]
    assert page.count("cannot be read") == 1
    assert console.get("/console/knowledge/moles").status_code == 503
    assert console.get("/console/knowledge/nevi").status_code == 200


def test_fingerprints_that_disclose_single_images_or_are_damaged_say_so(console: Console) -> None:
    store = console.service.store
    add(console, "moles")
    store.knowledge.put_fingerprint("moles", make_histogram(bins=50), actor="ann")
    page = console.get("/console/knowledge/moles").text
    assert "It describes single images: it needs at least 50. Do not share it." in page
    (record,) = store.knowledge.get("moles").fingerprints
    store.artifacts.remove(record.artifact)
    page = console.get("/console/knowledge/moles").text
    assert "It cannot be read: " in page
    assert "Licence" in page


def test_unknown_tasks_are_not_found(console: Console) -> None:
    for path in ("nothing", "Illegal", "a%2Fb", "<script>"):
        answer = console.get(f"/console/knowledge/{path}")
        assert answer.status_code == 404, path
        assert "To the start" in answer.text
        assert "<script" not in answer.text


def neighbours_of(console: Console, task: str, **query: object) -> str:
    text = "&".join(f"{name}={value}" for name, value in query.items())
    answer = console.get(f"/console/knowledge/{task}/neighbours?{text}")
    assert answer.status_code == 200, answer.text
    return html.unescape(" ".join(answer.text.split()))


@pytest.fixture(scope="module")
def ranker() -> FittedRanker:
    return fit_ranker(make_base(20).outcomes())


def test_suggestions_are_those_of_the_api(console: Console, ranker: FittedRanker) -> None:
    store, base = console.service.store, make_base(20)
    store.knowledge.import_base(base, actor="ann")
    store.rankers.put(
        ranker.to_bytes(),
        outcomes_digest=ranker.outcomes_digest,
        revision=store.knowledge.revision(),
        actor="ann",
    )
    counts: list[int] = []
    for target in base.tasks[:4]:
        expected = rank_sources(base, target, scenario="pretraining", ranker=ranker)
        page = neighbours_of(console, target, scenario="pretraining")
        rows = re.findall(r'<tr id="source-(\d+)">.*?<a href="/console/knowledge/([^"]+)">', page)
        assert [name for _, name in rows] == [one.source for one in expected.suggestions]
        for one in expected.suggestions:
            assert f"<strong>{one.expected_gain:+z.3f}</strong>" in page
            assert f"{one.low:+z.3f} to {one.high:+z.3f}" in page
            for reason in one.reasons:
                assert reason in page
        lead = re.search(r'<p class="lead[^"]*">(.*?)</p>', page)
        wanted = expected.declined or f"{expected.recommended} of 19 source tasks"
        assert lead[1].startswith(wanted)
        assert page.count("<title>") == 1 + 2 * 20  # of the page, and of each mark in both drawings
        counts.append(expected.recommended)
    assert 0 in counts
    assert max(counts) > 0


def test_without_measured_transfers_the_page_declines_and_names_the_closest_tasks(console: Console) -> None:
    console.service.store.knowledge.import_base(make_base(20), actor="ann")
    page = neighbours_of(console, "task_3_with_a_long_name", scenario="co_training")
    assert '<p class="lead declined">' in page
    assert "The closest tasks" in page
    assert 'class="map"' in page
    assert re.search(r'aria-current="page">Co-training</a>', page)
    assert (
        '<a href="/console/knowledge/task_3_with_a_long_name/neighbours?scenario=pretraining&measure=BA"'
        in page
    )


def test_choices_that_are_none_are_explained(console: Console) -> None:
    console.service.store.knowledge.import_base(make_base(3), actor="ann")
    path = "/console/knowledge/task_1_with_a_long_name/neighbours"
    assert console.get(f"{path}?scenario=nothing").status_code == 404
    assert console.get(f"{path}?page=0").status_code == 404
    assert console.get("/console/knowledge/nothing/neighbours").status_code == 404
    console.service.store.tasks.add("skin", ["a", "b"], [[0, 1], [1, 0]], actor="test")
    answer = console.get("/console/knowledge/skin/neighbours")
    assert answer.status_code == 404
    assert "Make its fingerprint" in answer.text
