import re
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import sqlalchemy as sa

from lifelong_core.store import Scope, Store
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from tests.databases import sqlite_only


def test_a_secret_is_shown_once_and_verifies_its_token(store: Store):
    token, secret = store.tokens.create("ci", [Scope.READ, Scope.PREDICT, Scope.READ], actor="ann")
    assert re.fullmatch(r"ll_[A-Za-z0-9_-]{43}", secret)
    assert token.scopes == {Scope.READ, Scope.PREDICT}
    assert store.tokens.verify(secret) == token == store.tokens.list()[0]


@sqlite_only
@pytest.mark.parametrize(
    "change", [str.upper, lambda secret: secret[:-1], lambda _: "", lambda secret: secret + "A"]
)
def test_another_secret_verifies_nothing(store: Store, change: Any):
    _, secret = store.tokens.create("ci", [Scope.READ], actor="ann")
    assert store.tokens.verify(change(secret)) is None


@sqlite_only
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


@sqlite_only
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


@sqlite_only
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


@sqlite_only
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


@sqlite_only
@pytest.mark.parametrize(
    ("name", "scopes", "field"),
    [("Not Legal", [Scope.READ], "name"), ("ci", [], "scopes"), ("ci", ["root"], "scopes")],
)
def test_a_token_that_makes_no_sense_is_refused(store: Store, name: str, scopes: Any, field: str):
    with pytest.raises(InvalidInputError) as refused:
        store.tokens.create(name, scopes, actor="ann")
    assert refused.value.field == field
    assert store.tokens.list() == []


@sqlite_only
def test_a_bound_token_may_use_its_environments_only(store: Store):
    token, secret = store.tokens.create(
        "gateway", [Scope.PREDICT], actor="ann", environments=["clinic-b", "clinic-a", "clinic-a"]
    )
    assert token.environments == {"clinic-a", "clinic-b"}
    assert store.tokens.verify(secret) == token
    assert token.may_use("clinic-a")
    assert not token.may_use("default")
    assert token.default_environment == "default", "which of the two is not known"
    assert store.environments.list() == ["clinic-a", "clinic-b", "default"]
    assert store.audit.list()[0].details["environments"] == ["clinic-a", "clinic-b"]
    one, _ = store.tokens.create("site", [Scope.FEEDBACK], actor="ann", environments=["clinic-a"])
    assert one.default_environment == "clinic-a"
    everywhere, _ = store.tokens.create("all", [Scope.PREDICT], actor="ann")
    assert everywhere.may_use("anywhere")


@sqlite_only
@pytest.mark.parametrize(
    ("scopes", "environments", "message"),
    [
        ([Scope.PREDICT], [], "no environment"),
        ([Scope.PREDICT], ["Clinic A"], "not a legal name"),
        ([Scope.PREDICT, Scope.READ], ["clinic-a"], "not read"),
        ([Scope.ADMIN], ["clinic-a"], "not admin"),
    ],
)
def test_a_binding_that_would_limit_nothing_is_refused(
    store: Store, scopes: list[Scope], environments: list[str], message: str
):
    with pytest.raises(InvalidInputError, match=message) as raised:
        store.tokens.create("gateway", scopes, actor="ann", environments=environments)
    assert raised.value.field == "environments"
    assert store.tokens.list() == []
    assert store.environments.list() == ["default"]


def test_a_rotated_token_has_a_new_secret_and_the_old_one_ends_with_the_overlap(store: Store):
    token, old = store.tokens.create("gateway", [Scope.PREDICT], actor="ann", environments=["clinic-a"])
    rotated, new = store.tokens.rotate("gateway", actor="bob", overlap=timedelta(seconds=0.4))
    assert new != old
    assert (rotated.id, rotated.name, rotated.scopes, rotated.environments, rotated.expires_at) == (
        token.id,
        "gateway",
        {Scope.PREDICT},
        {"clinic-a"},
        None,
    )
    found = store.tokens.verify(old)
    assert found is not None
    assert (found.id, found.expires_at) == (token.id, rotated.previous_expires_at)
    assert store.tokens.verify(new) == rotated
    registry = store.registry()
    assert registry is not None
    assert {one.expires_at for one in registry.tokens.values()} == {None, rotated.previous_expires_at}
    time.sleep(0.4)
    assert store.tokens.verify(old) is None
    assert store.tokens.verify(new) == rotated
    newest = store.audit.list()[0]
    assert (newest.actor, newest.action, newest.subject) == ("bob", "tokens.rotate", "gateway")


@sqlite_only
def test_rotating_again_ends_all_older_secrets(store: Store):
    _, first = store.tokens.create("gateway", [Scope.PREDICT], actor="ann")
    _, second = store.tokens.rotate("gateway", actor="ann", overlap=timedelta(days=1))
    _, third = store.tokens.rotate("gateway", actor="ann", overlap=timedelta(days=1))
    assert [store.tokens.verify(secret) is not None for secret in (first, second, third)] == [
        False,
        True,
        True,
    ]
    store.tokens.revoke("gateway", actor="ann")
    assert [store.tokens.verify(secret) for secret in (first, second, third)] == [None, None, None]
    with pytest.raises(ConflictError, match="revoked"):
        store.tokens.rotate("gateway", actor="ann", overlap=timedelta(0))


@sqlite_only
def test_a_rotated_token_gets_its_time_again_and_the_old_secret_none(store: Store):
    soon = datetime.now(UTC) + timedelta(hours=2)
    store.tokens.create("gateway", [Scope.PREDICT], actor="ann", expires_at=soon)
    rotated, _ = store.tokens.rotate("gateway", actor="ann", overlap=timedelta(days=1))
    assert rotated.previous_expires_at == soon, "not beyond its own expiry"
    assert rotated.expires_at is not None
    assert rotated.rotated_at is not None
    assert abs(rotated.expires_at - rotated.rotated_at - timedelta(hours=2)) < timedelta(seconds=5)
    later = datetime.now(UTC) + timedelta(days=9)
    assert (
        store.tokens.rotate("gateway", actor="ann", overlap=timedelta(0), expires_at=later)[0].expires_at
        == later
    )


@sqlite_only
@pytest.mark.parametrize("overlap", [timedelta(seconds=-1), timedelta(days=91)])
def test_an_overlap_out_of_range_is_refused(store: Store, overlap: timedelta):
    store.tokens.create("gateway", [Scope.PREDICT], actor="ann")
    with pytest.raises(InvalidInputError, match="90 days"):
        store.tokens.rotate("gateway", actor="ann", overlap=overlap)
    with pytest.raises(NotFoundError, match="nobody"):
        store.tokens.rotate("nobody", actor="ann", overlap=timedelta(0))


def test_the_last_use_is_kept_to_a_minute_and_never_goes_back(store: Store):
    token, _ = store.tokens.create("gateway", [Scope.PREDICT], actor="ann")
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    revision = store.revision()
    seen: list[datetime | None] = []
    for seconds in (0, 30, 90, -600):
        store.tokens.note_use({token.id: at + timedelta(seconds=seconds), 999: at})
        seen.append(store.tokens.list()[0].last_used_at)
    assert seen == [at, at, at + timedelta(seconds=90), at + timedelta(seconds=90)]
    assert store.revision() == revision, "no worker has to read the registry for that"
