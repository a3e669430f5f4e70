"""Signers are trusted by name and key, each once."""

import pytest

from lifelong_core.store import Store
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.databases import sqlite_only

KEY, OTHER_KEY = "ab" * 32, "cd" * 32


def test_a_signer_is_added_listed_and_removed_with_its_audit(store: Store):
    added = store.trusted_signers.add("clinic", f" {KEY.upper()}\n", actor="ann")
    assert (added.name, added.public_key, added.added_by) == ("clinic", KEY, "ann")
    assert store.trusted_signers.list() == [added]
    assert store.trusted_signers.remove("clinic", actor="bob") == added
    assert store.trusted_signers.list() == []
    assert [(entry.actor, entry.action, entry.details) for entry in store.audit.list()] == [
        ("bob", "signers.remove", {"public_key": KEY}),
        ("ann", "signers.add", {"public_key": KEY}),
    ]


@pytest.mark.parametrize(
    ("name", "key", "field"), [("clinic", OTHER_KEY, "name"), ("other", KEY, "public_key")]
)
def test_a_name_and_a_key_are_trusted_once(store: Store, name: str, key: str, field: str):
    store.trusted_signers.add("clinic", KEY, actor="ann")
    with pytest.raises(ConflictError, match=f"^{field}: the signer clinic is trusted already"):
        store.trusted_signers.add(name, key, actor="ann")


@sqlite_only
@pytest.mark.parametrize(
    ("name", "key", "field"),
    [
        ("local", KEY, "name"),
        ("Clinic", KEY, "name"),
        ("clinic", "xy", "public_key"),
        ("clinic", "ab", "public_key"),
    ],
)
def test_illegal_names_and_keys_are_refused(store: Store, name: str, key: str, field: str):
    with pytest.raises(InvalidInputError, match=f"^{field}: "):
        store.trusted_signers.add(name, key, actor="ann")
    assert store.trusted_signers.list() == []


@sqlite_only
def test_an_unknown_signer_cannot_be_removed(store: Store):
    with pytest.raises(NotFoundError, match="no trusted signer 'clinic'"):
        store.trusted_signers.remove("clinic", actor="ann")
