"""Sessions of the console end in time, and only a hash of the cookie is stored."""

import re
import threading
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from lifelong_core.store import Scope, Store
from lifelong_core.store.access import console_sessions
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import NotFoundError, UnauthenticatedError
from tests.databases import sqlite_only

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def token(store: Store, name: str = "ann", **options: datetime) -> str:
    return store.tokens.create(name, [Scope.READ], actor="test", **options)[1]


def begin(store: Store, secret: str, *, idle: timedelta = HOUR, lifetime: timedelta = DAY) -> str:
    return store.console_sessions.begin(secret, address="10.0.0.8", idle=idle, lifetime=lifetime)


def move(store: Store, **moments: timedelta) -> None:
    """Move moments of all sessions."""
    sessions = tables.console_sessions
    with store.database.write() as connection:
        for row in connection.execute(sa.select(sessions)).all():
            values = {name: getattr(row, name) + span for name, span in moments.items()}
            connection.execute(sa.update(sessions).where(sessions.c.id_hash == row.id_hash).values(values))


@sqlite_only
def test_a_session_leads_to_its_token(store: Store):
    identifier = begin(store, token(store))
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", identifier)
    found = store.console_sessions.find(identifier)
    assert found is not None
    assert found == store.tokens.list()[0]
    (listed,) = store.console_sessions.list()
    assert (listed.token, listed.address, listed.created_at) == ("ann", "10.0.0.8", listed.used_at)
    assert listed.valid_until - listed.used_at == HOUR
    assert listed.ends_at - listed.created_at == DAY


@sqlite_only
@pytest.mark.parametrize("wrong", ["", "x" * 43])
def test_another_identifier_leads_nowhere(store: Store, wrong: str):
    secret = token(store)
    begin(store, secret)
    assert store.console_sessions.find(wrong) is None
    assert store.console_sessions.find(secret) is None


@sqlite_only
def test_identifiers_differ_and_are_nowhere_in_the_database(store: Store):
    secret = token(store)
    identifiers = {begin(store, secret) for _ in range(5)}
    assert len(identifiers) == 5
    with store.database.read() as connection:
        shown = [
            str(row)
            for table in (tables.console_sessions, tables.audit)
            for row in connection.execute(sa.select(table))
        ]
    assert len(shown) == 5 + 6
    assert not any(identifier in row for identifier in identifiers for row in shown)


@sqlite_only
def test_only_the_secret_of_a_valid_token_begins_one(store: Store):
    secret = token(store)
    store.tokens.revoke("ann", actor="test")
    for wrong in (secret, "ll_wrong", ""):
        with pytest.raises(UnauthenticatedError):
            begin(store, wrong)
    assert store.console_sessions.list() == []


@sqlite_only
def test_without_requests_it_ends(store: Store):
    identifier = begin(store, token(store))
    move(store, valid_until=-HOUR - timedelta(seconds=1))
    assert store.console_sessions.find(identifier) is None
    assert store.console_sessions.list() == []


@sqlite_only
def test_requests_prolong_it_up_to_its_longest_time(store: Store):
    identifier = begin(store, token(store))
    move(store, used_at=-HOUR / 2, valid_until=-HOUR / 2)
    store.console_sessions.note_use([identifier, "gone"], idle=HOUR)
    (prolonged,) = store.console_sessions.list()
    assert prolonged.valid_until - prolonged.used_at == HOUR
    assert prolonged.used_at > prolonged.created_at
    move(store, ends_at=-DAY + HOUR / 4)
    store.console_sessions.note_use([identifier], idle=HOUR)
    (prolonged,) = store.console_sessions.list()
    assert prolonged.valid_until == prolonged.ends_at


@sqlite_only
def test_a_session_lives_no_longer_than_its_token(store: Store):
    expires_at = datetime.now(UTC) + timedelta(minutes=10)
    begin(store, token(store, expires_at=expires_at))
    (session,) = store.console_sessions.list()
    assert session.valid_until == session.ends_at == expires_at


@sqlite_only
def test_a_session_of_the_secret_before_a_rotation_ends_with_it(store: Store):
    secret = token(store)
    rotated, _ = store.tokens.rotate("ann", actor="test", overlap=HOUR)
    begin(store, secret, idle=DAY)
    (session,) = store.console_sessions.list()
    assert session.ends_at == rotated.previous_expires_at


@sqlite_only
def test_a_revocation_ends_all_sessions_of_the_token_and_no_others(store: Store):
    others = begin(store, token(store, "bob"))
    secret = token(store)
    mine = [begin(store, secret) for _ in range(2)]
    store.tokens.revoke("ann", actor="test")
    assert [store.console_sessions.find(one) for one in mine] == [None, None]
    assert store.console_sessions.find(others) is not None
    assert [session.token for session in store.console_sessions.list()] == ["bob"]


@sqlite_only
def test_a_rotation_ends_all_sessions_although_the_old_secret_is_valid_for_a_while(store: Store):
    secret = token(store)
    identifier = begin(store, secret)
    _, fresh = store.tokens.rotate("ann", actor="test", overlap=HOUR)
    assert store.console_sessions.find(identifier) is None
    assert store.console_sessions.find(begin(store, fresh)) is not None


def test_a_login_beside_revocations_leaves_no_session(store: Store):
    """Whichever comes first: a session that begins while its token is revoked does not outlive it."""
    for attempt in range(5):
        name = f"ann-{attempt}"
        secret = token(store, name)
        start = threading.Barrier(2)

        def log_in(secret: str = secret, start: threading.Barrier = start) -> None:
            start.wait()
            with suppress(UnauthenticatedError):
                begin(store, secret)

        thread = threading.Thread(target=log_in)
        thread.start()
        start.wait()
        store.tokens.revoke(name, actor="test")
        thread.join()
    with store.database.read() as connection:
        assert connection.execute(sa.select(tables.console_sessions)).all() == []


@sqlite_only
def test_logging_out_ends_one_session(store: Store):
    secret = token(store)
    first, second = begin(store, secret), begin(store, secret)
    store.console_sessions.end(first)
    store.console_sessions.end(first)
    assert store.console_sessions.find(first) is None
    assert store.console_sessions.find(second) is not None
    actions = [(entry.actor, entry.action, entry.subject) for entry in store.audit.list(action="console")]
    assert actions == [
        ("ann", "console.logout", "ann"),
        ("ann", "console.login", "ann"),
        ("ann", "console.login", "ann"),
    ]


def test_logging_out_everywhere_ends_those_of_one_token(store: Store):
    secret = token(store)
    others = begin(store, token(store, "bob"))
    for _ in range(3):
        begin(store, secret)
    assert store.console_sessions.end_all("ann", actor="cli:eve") == 3
    assert store.console_sessions.end_all("ann", actor="cli:eve") == 0
    assert store.console_sessions.list("ann") == []
    assert store.console_sessions.find(others) is not None
    (entry,) = store.audit.list(action="console.logout")
    assert (entry.actor, entry.subject, entry.details) == ("cli:eve", "ann", {"sessions": 3})
    with pytest.raises(NotFoundError):
        store.console_sessions.end_all("nobody", actor="cli:eve")


def test_a_token_has_so_many_sessions_and_no_more(store: Store, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(console_sessions, "MOST_SESSIONS", 3)
    secret = token(store)
    first = begin(store, secret)
    others = begin(store, token(store, "bob"))
    later = [begin(store, secret) for _ in range(3)]
    assert store.console_sessions.find(first) is None
    assert all(store.console_sessions.find(one) for one in (*later, others))


def test_what_is_over_is_deleted_and_nothing_else(store: Store):
    secret = token(store)
    begin(store, secret, idle=timedelta(milliseconds=1))
    while store.console_sessions.list():
        pass
    kept = begin(store, token(store, "bob"))
    assert store.console_sessions.delete_expired() == 1
    assert store.console_sessions.delete_expired() == 0
    assert store.console_sessions.find(kept) is not None
