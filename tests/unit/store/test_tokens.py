import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.errors import ConflictError, InvalidInputError
from lifelong_core.store import Scope, Store, tables


def test_a_secret_is_shown_once_and_verifies_its_token(store: Store):
    token, secret = store.tokens.create("ci", [Scope.READ, Scope.PREDICT, Scope.READ], actor="ann")
    assert re.fullmatch(r"ll_[A-Za-z0-9_-]{43}", secret)
    assert token.scopes == {Scope.READ, Scope.PREDICT}
    assert store.tokens.verify(secret) == token == store.tokens.list()[0]


@pytest.mark.parametrize(
    "change", [str.upper, lambda secret: secret[:-1], lambda _: "", lambda secret: secret + "A"]
)
def test_another_secret_verifies_nothing(store: Store, change: Any):
    _, secret = store.tokens.create("ci", [Scope.READ], actor="ann")
    assert store.tokens.verify(change(secret)) is None


def test_the_secret_itself_is_nowhere_in_the_database(store: Store):
    _, secret = store.tokens.create("ci", [Scope.READ], actor="ann")
    with store.database.read() as connection:
        rows = [
            str(row)
            for table in (tables.tokens, tables.audit)
            for row in connection.execute(sa.select(table))
        ]
    assert len(rows) == 2
    assert not any(secret in row or secret[3:] in row for row in rows)


def test_secrets_differ(store: Store):
    assert len({store.tokens.create(f"t{index}", [Scope.READ], actor="ann")[1] for index in range(5)}) == 5


def test_a_token_expires(store: Store):
    now = datetime.now(UTC)
    _, over = store.tokens.create(
        "over", [Scope.READ], actor="ann", expires_at=now + timedelta(milliseconds=300)
    )
    time.sleep(0.3)
    still, secret = store.tokens.create(
        "still", [Scope.READ], actor="ann", expires_at=now + timedelta(hours=1)
    )
    assert store.tokens.verify(over) is None
    assert store.tokens.verify(secret) == still
    assert still.expires_at == now + timedelta(hours=1)


@pytest.mark.parametrize(
    "moment",
    [
        datetime.now(UTC) - timedelta(seconds=1),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=12))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=12))),
    ],
)
def test_a_token_must_end_in_the_future(store: Store, moment: datetime):
    with pytest.raises(InvalidInputError) as refused:
        store.tokens.create("over", [Scope.READ], actor="ann", expires_at=moment)
    assert refused.value.field == "expires_at"
    assert store.tokens.list() == []


def test_a_revoked_token_is_invalid_for_good(store: Store):
    _, secret = store.tokens.create("ci", [Scope.READ], actor="ann")
    revoked = store.tokens.revoke("ci", actor="bob")
    assert revoked.revoked_at is not None
    assert store.tokens.verify(secret) is None
    assert store.tokens.revoke("ci", actor="eve") == revoked
    assert [(entry.action, entry.actor) for entry in store.audit.list()] == [
        ("tokens.revoke", "bob"),
        ("tokens.create", "ann"),
    ]
    with pytest.raises(ConflictError, match="was, a token"):
        store.tokens.create("ci", [Scope.READ], actor="ann")


@pytest.mark.parametrize(
    ("name", "scopes", "field"),
    [("Not Legal", [Scope.READ], "name"), ("ci", [], "scopes"), ("ci", ["root"], "scopes")],
)
def test_a_token_that_makes_no_sense_is_refused(store: Store, name: str, scopes: Any, field: str):
    with pytest.raises(InvalidInputError) as refused:
        store.tokens.create(name, scopes, actor="ann")
    assert refused.value.field == field
    assert store.tokens.list() == []
