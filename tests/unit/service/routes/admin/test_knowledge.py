"""The knowledge base over HTTP: entries, signed bundles, trusted signers."""

from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.develop.knowledge.bundle import write_bundle
from lifelong_core.develop.knowledge.entry import KnowledgeEntry
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.signing import SigningKey
from lifelong_core.operations.develop.knowledge import PutKnowledge
from lifelong_core.store.knowledge.exchange import create_signing_key
from lifelong_core.store.schema import tables
from tests.unit.service.conftest import Service
from tests.unit.service.routes.test_operations import error_of
from tests.unit.store.knowledge_samples import make_entry, make_histogram

PATH, SIGNERS = "/v1/admin/knowledge", "/v1/admin/signers"
BINARY = {"Content-Type": "application/octet-stream"}


def put(service: Service, name: str = "moles", **options: Any) -> dict[str, Any]:
    answer = service.client.request("PUT", f"{PATH}/{name}", json=make_entry(name, **options).to_document())
    assert answer.status_code == 200, answer.text
    return answer.json()


def trusted_key(service: Service, name: str = "clinic") -> SigningKey:
    key = SigningKey.generate()
    answer = service.client.post(SIGNERS, json={"name": name, "public_key": key.public_key})
    assert answer.status_code == 201, answer.text
    return key


def bundle(key: SigningKey, *names: str, extractor: str | None = None, **options: Any) -> bytes:
    fingerprints = (
        {} if extractor is None else {name: [make_histogram(extractor=extractor)] for name in names}
    )
    return write_bundle([make_entry(name, **options) for name in names], fingerprints, key)


def send(service: Service, content: bytes, query: str = "") -> Any:
    return service.client.post(f"{PATH}/import{query}", content=content, headers=BINARY)


def everything(service: Service) -> tuple[Any, ...]:
    store = service.store
    return (
        store.knowledge.state(),
        store.knowledge.list(),
        store.jobs.list(),
        store.audit.list(kind="changes"),
    )


def test_an_entry_is_stored_shown_listed_and_deleted(service: Service) -> None:
    made = put(service, sources=("nevi",))
    assert made["entry"] == make_entry(sources=("nevi",)).to_document()
    assert (made["task"], made["origin"], made["transfers"], made["damaged"]) == ("moles", "local", 1, None)
    assert service.client.get(f"{PATH}/moles").json() == made
    listed = service.client.get(PATH).json()
    assert listed["entries"] == [{name: made[name] for name in made if name not in ("entry", "measures")}]
    assert (listed["total"], listed["transfers"], listed["ranker"]) == (1, 1, None)
    assert listed["origins"] == {"local": 1}
    assert [job["kind"] for job in service.client.get("/v1/admin/jobs").json()["jobs"]] == ["rank"]
    assert service.client.request("DELETE", f"{PATH}/moles").json() == {"removed": "moles"}
    assert service.client.get(PATH).json()["entries"] == []
    newest = service.store.audit.list(limit=1)[0]
    assert (newest.action, newest.subject, newest.actor) == ("knowledge.delete", "moles", "admin-token")


def test_the_call_takes_the_fields_of_an_entry() -> None:
    fields = {
        name: field.is_required() for name, field in PutKnowledge.model_fields.items() if name != "task"
    }
    assert fields == {name: field.is_required() for name, field in KnowledgeEntry.model_fields.items()}


def test_pages_lead_through_all_entries(service: Service) -> None:
    names = [f"task-{number}" for number in range(5)]
    service.store.knowledge.import_base(KnowledgeBase.from_entries(map(make_entry, names)), actor="test")
    first = service.client.get(f"{PATH}?limit=3").json()
    assert [one["task"] for one in first["entries"]] == names[:3]
    assert (first["next"], first["total"]) == ("task-2", 5)
    second = service.client.get(f"{PATH}?limit=3&after=task-2").json()
    assert ([one["task"] for one in second["entries"]], second["next"]) == (names[3:], None)


def test_an_illegal_entry_is_refused_by_its_field(service: Service) -> None:
    for change, field in (
        ({"card": None}, "card"),
        ({"card": {"name": "moles", "classes": 1, "samples": 5}}, "card.classes"),
        ({"card": {"name": "other", "classes": 2, "samples": 5}}, "card.name"),
        ({"more": 1}, "more"),
        ({"trainings": [{"performance": {}}]}, "trainings.0.performance"),
    ):
        answer = service.client.request("PUT", f"{PATH}/moles", json={**make_entry().to_document(), **change})
        assert (answer.status_code, error_of(answer)["field"]) == (422, field)
        assert service.store.knowledge.list() == []


def test_what_does_not_fit_is_named(service: Service) -> None:
    for method, path, status, field in (
        ("GET", f"{PATH}/moles", 404, "task"),
        ("DELETE", f"{PATH}/moles", 404, "task"),
        ("GET", f"{PATH}?limit=0", 422, "limit"),
        ("GET", f"{PATH}?after=A", 422, "after"),
        ("GET", f"{PATH}?page=2", 422, "page"),
        ("GET", f"{PATH}/export?tasks=a", 422, "tasks"),
        ("DELETE", f"{SIGNERS}/clinic", 404, "name"),
    ):
        answer = service.client.request(method, path)
        assert (answer.status_code, error_of(answer)["field"]) == (status, field)


def test_a_damaged_entry_is_listed_and_can_be_deleted(service: Service) -> None:
    put(service)
    with service.store.database.write() as connection:
        connection.execute(sa.update(tables.knowledge_entries).values(document="{}"))
    (listed,) = service.client.get(PATH).json()["entries"]
    assert listed["classes"] is None
    assert "damaged" in listed["damaged"]
    assert service.client.get(f"{PATH}/moles").json()["entry"] is None
    assert service.client.request("DELETE", f"{PATH}/moles").status_code == 200


def test_a_bundle_of_a_trusted_signer_is_imported_under_its_name(service: Service) -> None:
    key = trusted_key(service)
    answer = send(service, bundle(key, "a", "b", extractor="ab" * 32))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["signer"], found["added"], found["changed"]) == ("clinic", ["a", "b"], [])
    shown = service.client.get(f"{PATH}/a").json()
    assert shown["origin"] == "clinic"
    assert [(one["kind"], one["extractor"], one["samples"]) for one in shown["fingerprints"]] == [
        ("histogram", "ab" * 32, 20)
    ]
    newest = service.store.audit.list(limit=1)[0]
    assert (newest.action, newest.subject) == ("knowledge.import", "clinic")
    newer = send(service, bundle(key, "b", samples=9)).json()
    assert (newer["changed"], newer["unchanged"]) == (["b"], [])


def forged(key: SigningKey) -> bytes:
    content = bytearray(bundle(key, "moles"))
    content[-200] ^= 1
    return bytes(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no bundle",
        lambda key: forged(key),
        lambda _: bundle(SigningKey.generate(), "moles"),
        lambda key: bundle(key, "moles", extractor="cd" * 32),
    ],
    ids=["empty", "noise", "forged", "stranger", "another extractor"],
)
def test_a_bundle_that_is_refused_leaves_nothing(service: Service, content: Any) -> None:
    put(service, "nevi")
    service.store.knowledge.put_fingerprint("nevi", make_histogram(), actor="test")
    key = trusted_key(service)
    before = everything(service)
    answer = send(service, content(key) if callable(content) else content)
    assert (answer.status_code, error_of(answer)["field"]) == (422, "bundle")
    assert everything(service) == before


def test_a_bundle_replaces_local_entries_on_request_only(service: Service) -> None:
    put(service)
    content = bundle(trusted_key(service), "moles", samples=9)
    answer = send(service, content)
    assert (answer.status_code, error_of(answer)["field"]) == (409, "replace")
    assert send(service, content, "?replace=true").json()["changed"] == ["moles"]


def test_a_bundle_above_the_limit_is_refused(serve: Any, registered: None) -> None:
    content = bundle(SigningKey.generate(), "moles")
    service = serve(maximum_bundle_bytes=len(content) - 1)
    answer = send(service, content)
    assert (answer.status_code, error_of(answer)["field"]) == (413, "body")


def test_an_export_is_imported_elsewhere(service: Service) -> None:
    put(service, "a")
    put(service, "b")
    service.store.knowledge.put_fingerprint("a", make_histogram(), actor="test")
    refused = service.client.get(f"{PATH}/export")
    assert (refused.status_code, error_of(refused)["field"]) == (409, "signing_key_file")
    key = create_signing_key(service.settings.resolved_signing_key_file)
    assert service.client.get(SIGNERS).json() == {"signers": [], "own_public_key": key.public_key}
    exported = service.client.get(f"{PATH}/export?task=a")
    assert exported.status_code == 200
    newest = service.store.audit.list(limit=1)[0]
    assert (newest.action, newest.details) == ("knowledge.export", {"exported": 1, "tasks": ["a"]})
    assert service.client.get(f"{PATH}/export?task=a,c").status_code == 404
    for name in ("a", "b"):
        service.store.knowledge.delete(name, actor="test")
    # The own key needs no entry among the trusted ones.
    assert send(service, exported.content).json()["signer"] == "local"
    assert service.store.knowledge.load() == KnowledgeBase({"a": make_entry("a")}, {"a": (make_histogram(),)})


def test_an_export_above_the_limit_is_refused(serve: Any, registered: None) -> None:
    service = serve(maximum_bundle_bytes=100)
    service.store.knowledge.put(make_entry(), actor="test")
    create_signing_key(service.settings.resolved_signing_key_file)
    answer = service.client.get(f"{PATH}/export")
    assert (answer.status_code, error_of(answer)["field"]) == (413, "task")


def test_signers_are_added_listed_and_removed(service: Service) -> None:
    key = trusted_key(service)
    listed = service.client.get(SIGNERS).json()
    assert [(one["name"], one["public_key"]) for one in listed["signers"]] == [("clinic", key.public_key)]
    again = service.client.post(SIGNERS, json={"name": "other", "public_key": key.public_key})
    assert (again.status_code, error_of(again)["field"]) == (409, "public_key")
    wrong = service.client.post(SIGNERS, json={"name": "other", "public_key": "xy"})
    assert (wrong.status_code, error_of(wrong)["field"]) == (422, "public_key")
    assert service.client.request("DELETE", f"{SIGNERS}/clinic").json() == {"removed": "clinic"}
    assert send(service, bundle(key, "a")).status_code == 422
