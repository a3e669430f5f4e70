"""The knowledge base on the command line: imported, listed, shown, exchanged and deleted."""

import json
from pathlib import Path

import pytest

from lifelong.commands.common import open_store
from lifelong_core.develop.knowledge.bundle import write_bundle, write_unsigned_bundle
from lifelong_core.develop.knowledge.entry import KnowledgeEntry, TaskCard, Training
from lifelong_core.develop.knowledge.signing import SigningKey
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests import tools
from tests.unit.store.knowledge_samples import make_entry, make_histogram


def put(*names: str, **options: object) -> None:
    with open_store() as store:
        for name in names:
            store.knowledge.put(make_entry(name, **options), actor="tests")  # type: ignore[arg-type]


def test_the_published_outcomes_are_a_first_knowledge_base(installed, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert "No entry yet" in installed("knowledge", "list")
    told = installed("knowledge", "import", str(tools.transfer_folder()))
    assert "28 new, 0 changed, 0 unchanged" in told
    assert "fit the ranker" in told
    listed = installed("knowledge", "list").splitlines()
    assert listed[0].split() == ["task", "classes", "samples", "transfers", "fingerprints"]
    assert max(map(len, listed)) <= 80
    assert listed[-1].startswith("28 of 28 tasks; in all 3498 transfers, 0 fingerprints; no ranker")
    shown = installed("knowledge", "show", "svhn")
    assert "data set        svhn" in shown
    assert max(map(len, shown.splitlines())) <= 80
    again = json.loads(installed("knowledge", "import", str(tools.transfer_folder()), "--json"))
    assert (again["added"], again["changed"], len(again["unchanged"])) == ([], [], 28)


def test_a_list_has_pages_and_json(installed):
    installed("knowledge", "list")
    put("a", "b", "c", sources=("z",))
    rows = json.loads(installed("knowledge", "list", "--after", "a", "--limit", "1", "--json"))
    assert rows == [
        {"task": "b", "classes": 2, "samples": 100, "transfers": 1, "fingerprints": 0, "origin": "local"}
    ]


def test_an_entry_is_shown_with_its_best_source_and_its_fingerprints(installed):
    put("moles", sources=("nevi",))
    with open_store() as store:
        store.knowledge.put_fingerprint("moles", make_histogram(), actor="tests")
    shown = installed("knowledge", "show", "moles")
    assert "histogram, 20 images, 8 bins, extractor abababababab" in shown
    assert "0.777 with nevi" in shown
    document = json.loads(installed("knowledge", "show", "moles", "--json"))
    assert document["entry"] == make_entry("moles", sources=("nevi",)).to_document()
    with pytest.raises(NotFoundError, match="no entry of the task 'other'"):
        installed("knowledge", "show", "other")


def test_two_institutions_exchange_a_bundle(installed, monkeypatch, tmp_path: Path):
    bundle, away = tmp_path / "ours.bundle", tmp_path / "away"
    with pytest.raises(ConflictError, match="no signing key"):
        installed("knowledge", "export", "--output", str(bundle))
    key = installed("knowledge", "key").strip()
    assert installed("knowledge", "key").strip() == key
    assert (tmp_path / "lifelong-data" / "signing.key").stat().st_mode & 0o077 == 0
    put("moles", "nevi")
    assert "Wrote" in installed("knowledge", "export", "moles", "--output", str(bundle))
    monkeypatch.setenv("LIFELONG_DATA_DIRECTORY", str(away))
    installed("init")
    with pytest.raises(InvalidInputError, match="not trusted"):
        installed("knowledge", "import", str(bundle))
    assert "imported from now on" in installed("knowledge", "trust", "clinic", key)
    assert "(clinic): 1 new" in installed("knowledge", "import", str(bundle))
    assert "from clinic" in installed("knowledge", "list")
    (signer,) = json.loads(installed("knowledge", "signers", "--json"))
    assert (signer["name"], signer["entries"], signer["public_key"]) == ("clinic", 1, key)
    assert "refused from now on" in installed("knowledge", "distrust", "clinic")
    assert "No trusted signer" in installed("knowledge", "signers")
    assert "Deleted moles" in installed("knowledge", "delete", "moles")
    actions = [entry["action"] for entry in json.loads(installed("audit", "--json"))]
    assert actions[:4] == ["knowledge.delete", "signers.remove", "knowledge.import", "signers.add"]


def test_local_entries_are_replaced_and_unsigned_bundles_taken_on_request_only(installed, tmp_path: Path):
    put("moles")
    theirs, unsigned = tmp_path / "theirs.bundle", tmp_path / "unsigned.bundle"
    key = SigningKey.generate()
    theirs.write_bytes(write_bundle([make_entry(samples=7)], {}, key))
    unsigned.write_bytes(write_unsigned_bundle([make_entry(samples=9)], {}))
    installed("knowledge", "trust", "clinic", key.public_key)
    with pytest.raises(ConflictError, match="another origin than clinic"):
        installed("knowledge", "import", str(theirs))
    assert "1 changed" in installed("knowledge", "import", str(theirs), "--replace")
    with pytest.raises(InvalidInputError, match="not signed"):
        installed("knowledge", "import", str(unsigned))
    assert "1 changed" in installed("knowledge", "import", str(unsigned), "--accept-unsigned", "--replace")


def test_a_fit_of_the_ranker_is_requested_where_there_is_something_to_fit(installed):
    assert "nothing to fit" in installed("knowledge", "refit")
    put("moles", sources=("nevi",))
    assert "waits already" in installed("knowledge", "refit")
    with open_store() as store:
        assert store.jobs.claim("monitor", lease_seconds=60) is not None
    assert "Submitted the job" in installed("knowledge", "refit")


def test_an_entry_and_a_card_are_entered_from_files(installed, tmp_path):
    card = TaskCard(name="moles", classes=2, samples=300)
    entry = KnowledgeEntry(
        card=card, trainings=(Training(performance={"BA": (0.7, 0.8)}),), contact="a@b.example"
    )
    file = tmp_path / "entry.json"
    file.write_text(entry.to_json())
    assert installed("knowledge", "add", str(file)) == "Entered moles: 1 training.\n"
    shown = json.loads(installed("knowledge", "show", "moles", "--json"))
    assert KnowledgeEntry.from_document(shown["entry"]) == entry
    file.write_text(card.model_copy(update={"samples": 400}).to_json())
    assert installed("knowledge", "add", str(file)) == "Entered moles: 1 training.\n"
    changed = KnowledgeEntry.from_document(
        json.loads(installed("knowledge", "show", "moles", "--json"))["entry"]
    )
    assert (changed.card.samples, changed.trainings) == (400, entry.trainings)
    file.write_text('{"card": {"name": "moles", "classes": 1, "samples": 3}}')
    with pytest.raises(InvalidInputError, match=r"entry\.json") as caught:
        installed("knowledge", "add", str(file))
    assert caught.value.field == "card.classes"
    with pytest.raises(InvalidInputError, match="cannot be read"):
        installed("knowledge", "add", str(tmp_path / "none.json"))
