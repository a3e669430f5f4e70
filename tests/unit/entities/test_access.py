from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from lifelong_core.store import Scope, Token

NOW = datetime(2026, 1, 1, tzinfo=UTC)

GRANTS = {
    Scope.PREDICT: {Scope.PREDICT},
    Scope.FEEDBACK: {Scope.FEEDBACK},
    Scope.READ: {Scope.READ},
    Scope.METRICS: {Scope.METRICS},
    Scope.OPERATE: {Scope.OPERATE, Scope.READ},
    Scope.ADMIN: set(Scope),
}


@given(st.frozensets(st.sampled_from(Scope)))
def test_a_token_allows_what_its_scopes_include(scopes: frozenset[Scope]):
    token = Token(id=1, name="ci", scopes=scopes, created_at=NOW)
    allowed = {scope for scope in Scope if token.allows(scope)}
    assert allowed == set().union(*(GRANTS[scope] for scope in scopes))
