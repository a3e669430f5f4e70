"""Tokens in the console: create, rotate, revoke; a secret is shown once, after a confirmation."""

import re

import pytest

from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console

LIST = "/console/tokens"
NEW = {
    "name": "scanner-3",
    "scopes": ["predict", "feedback"],
    "environments": "clinic-a, clinic-b",
    "days": "30",
}


@pytest.fixture
def console(service: Service) -> Console:
    return Console(service, scope="admin")


def secret_in(text: str) -> str:
    (secret,) = re.findall(r"ll_[\w-]{43}", text)
    return secret


def test_a_token_is_created_after_a_confirmation_and_its_secret_is_shown_once(console: Console) -> None:
    store = console.service.store
    asked = console.ask(LIST, NEW)
    assert (
        "scanner-3 gets a token with the scopes feedback, predict, only in clinic-a, clinic-b." in asked.text
    )
    assert "scanner-3" not in {token.name for token in store.tokens.list()}
    made = console.post(LIST, NEW)
    assert made.headers["cache-control"] == "no-store"
    secret = secret_in(made.text)
    (token,) = (token for token in store.tokens.list() if token.name == "scanner-3")
    assert token.environments == {"clinic-a", "clinic-b"}
    assert token.expires_at is not None
    assert (token.expires_at - token.created_at).days in (29, 30)
    for path in (LIST, f"{LIST}/scanner-3"):
        shown = console.get(path).text
        assert "scanner-3" in shown
        assert secret not in shown


def test_a_refused_token_is_shown_with_what_was_typed(console: Console) -> None:
    for form in (NEW | {"name": "Not legal!"}, NEW | {"scopes": ["admin"]}, NEW | {"scopes": []}):
        refused = console.post(LIST, form)
        assert refused.status_code == 422
        assert 'value="clinic-a, clinic-b"' in refused.text
        assert 'role="alert"' in refused.text


def test_a_token_is_rotated_and_revoked(console: Console) -> None:
    store = console.service.store
    page = f"{LIST}/read-token"
    assert "Revoke" in console.get(page).text
    rotated = console.post(f"{page}/rotate", {"overlap": "0"})
    token = store.tokens.verify(secret_in(rotated.text))
    assert token is not None
    assert token.name == "read-token"
    assert console.ask(f"{page}/revoke").status_code == 200
    assert console.post(f"{page}/revoke").headers["location"] == page
    assert store.tokens.verify(secret_in(rotated.text)) is None
    assert "/revoke" not in console.get(page).text
    assert console.get(f"{LIST}/nothing").status_code == 404


def test_an_operator_sees_tokens_and_no_forms(service: Service) -> None:
    console = Console(service)
    for path in (LIST, f"{LIST}/read-token"):
        assert '<form method="post" action="/console/tokens' not in console.get(path).text
    assert console.post(LIST, NEW).status_code == 403
