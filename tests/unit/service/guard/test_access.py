"""The required scope of every route of the application."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from starlette.routing import Route

from lifelong_core.configuration.settings import Settings
from lifelong_service.application import create_application
from lifelong_service.console.route import ConsoleRoute
from lifelong_service.guard.route import GuardedRoute
from tests.unit.service.conftest import Installations, Service, png, running
from tests.unit.service.waiting import eventually

PUBLIC = {"/", "/livez", "/readyz", "/openapi.json"}
OPENED_BY = {
    "/v1/predict": "open_access",
    "/v1/logits": "open_access",
    "/v1/feedback": "open_access",
    "/metrics": "open_metrics",
}
OPEN_BY_SETTING = {path for path, setting in OPENED_BY.items() if setting == "open_access"}
SCOPES = {
    ("GET", "/metrics"): "metrics",
    ("POST", "/v1/predict"): "predict",
    ("POST", "/v1/logits"): "predict",
    ("POST", "/v1/feedback"): "feedback",
    ("POST", "/v1/admin/tasks"): "admin",
    ("POST", "/v1/admin/models"): "admin",
    ("POST", "/v1/admin/models/{reference}/promote"): "operate",
    ("POST", "/v1/admin/models/{reference}/shadow"): "operate",
    ("POST", "/v1/admin/models/{reference}/canary"): "operate",
    ("DELETE", "/v1/admin/tasks/{task}/trial"): "operate",
    ("POST", "/v1/admin/tasks/{task}/rollback"): "operate",
    ("POST", "/v1/admin/models/{reference}/logits"): "operate",
    ("POST", "/v1/admin/models/{reference}/calibration-sets"): "operate",
    ("POST", "/v1/admin/models/{model}/calibration-sets/{identifier}/activate"): "operate",
    ("POST", "/v1/admin/models/{model}/heads"): "operate",
    ("POST", "/v1/admin/models/{model}/heads/rollback"): "operate",
    ("POST", "/v1/admin/models/{model}/heads/pin"): "operate",
    ("POST", "/v1/admin/models/{model}/heads/unpin"): "operate",
    ("POST", "/v1/admin/cycles/{cycle}/approve"): "operate",
    ("POST", "/v1/admin/cycles/{cycle}/reject"): "operate",
    ("POST", "/v1/admin/cycles/{cycle}/replay"): "operate",
    ("POST", "/v1/admin/proposals/{proposal}/accept"): "operate",
    ("POST", "/v1/admin/proposals/{proposal}/dismiss"): "operate",
    ("POST", "/v1/admin/populations/{model}/{environment}/cycle"): "operate",
    ("POST", "/v1/admin/populations/{reference}/{environment}/labelling-plan"): "operate",
    ("POST", "/v1/admin/interviews"): "operate",
    ("POST", "/v1/admin/interviews/{interview}/answers"): "operate",
    ("POST", "/v1/admin/interviews/{interview}/choices"): "operate",
    ("POST", "/v1/admin/interviews/{interview}/back"): "operate",
    ("POST", "/v1/admin/interviews/{interview}/finish"): "operate",
    ("DELETE", "/v1/admin/interviews/{interview}"): "operate",
    ("POST", "/v1/admin/tasks/{task}/recommendations"): "admin",
    ("POST", "/v1/admin/jobs/{job}/cancel"): "admin",
    ("POST", "/v1/admin/jobs/cancel"): "operate",
    ("POST", "/v1/admin/tasks/{task}/fingerprints"): "operate",
    ("POST", "/v1/admin/tasks/{task}/retrainings"): "operate",
    ("POST", "/v1/admin/tasks/{task}/retrainings/plan"): "read",
    ("POST", "/v1/admin/tasks/{task}/augmentation-searches"): "operate",
    ("POST", "/v1/admin/models/{reference}/validations"): "operate",
    ("POST", "/v1/admin/models/{reference}/reports"): "operate",
    ("PUT", "/v1/admin/knowledge/{task}"): "operate",
    ("DELETE", "/v1/admin/knowledge/{task}"): "admin",
    # The tasks are too many for a query.
    ("POST", "/v1/admin/knowledge/map"): "read",
    ("POST", "/v1/admin/knowledge/import"): "operate",
    # It signs in the name of the installation.
    ("GET", "/v1/admin/knowledge/export"): "operate",
    ("POST", "/v1/admin/signers"): "admin",
    ("DELETE", "/v1/admin/signers/{name}"): "admin",
    ("POST", "/v1/admin/groups/erase"): "admin",
    ("POST", "/v1/admin/tokens"): "admin",
    ("POST", "/v1/admin/tokens/{name}/rotate"): "admin",
    ("POST", "/v1/admin/tokens/{name}/log-out"): "admin",
    ("POST", "/v1/admin/notifications/test"): "operate",
    ("DELETE", "/v1/admin/tokens/{name}"): "admin",
    ("DELETE", "/v1/admin/models/{reference}"): "admin",
    ("POST", "/v1/admin/environments"): "operate",
    ("POST", "/v1/admin/environments/{name}/disable"): "operate",
    ("POST", "/v1/admin/environments/{name}/enable"): "operate",
    ("DELETE", "/v1/admin/environments/{name}"): "admin",
}
GRANTS = {
    "predict": {"predict", "admin"},
    "feedback": {"feedback", "admin"},
    "metrics": {"metrics", "admin"},
    "read": {"read", "operate", "admin"},
    "operate": {"operate", "admin"},
    "admin": {"admin"},
}
ROUTES = [
    (method, route)
    for route in create_application(Settings()).routes
    if isinstance(route, Route) and not isinstance(route, ConsoleRoute)  # test_console_access looks at these
    for method in sorted(route.methods or set())
    if method != "HEAD"
]
GUARDED = [(method, route) for method, route in ROUTES if route.path not in PUBLIC]
ONE_OF_EACH_RULE = [*{(method, route.access): (method, route) for method, route in GUARDED}.values()]
"""The guard of a route follows from its method and its access rule alone."""


def named(routes: list[tuple[str, Route]]) -> list[str]:
    return [f"{method} {route.path}" for method, route in routes]


def path_of(route: Route) -> str:
    known = {
        "reference": "linear",
        "model": "linear",
        "version": 1,
        "name": "nobody",
        "environment": "default",
    }
    known |= {"identifier": 1, "task": "skin"}
    return route.path.format_map(defaultdict(lambda: UUID(int=1), known))


def place(method: str, path: str) -> tuple[str, str]:
    """A route, whatever its parameters are called."""
    return method, re.sub(r"{\w+}", "{}", path)


def test_every_route_is_guarded_and_the_public_ones_are_these() -> None:
    assert len(GUARDED) >= 20
    for _, route in ROUTES:
        assert isinstance(route, GuardedRoute)
        assert (route.access.scope is None) == (route.path in PUBLIC), route.path


def test_scope_of_every_route() -> None:
    """A new route that changes something must be listed above with its scope."""
    expected = {place(*one): scope for one, scope in SCOPES.items()}
    scopes = {place(method, route.path): route.access.scope for method, route in GUARDED}
    assert scopes == {one: expected.get(one, "read" if one[0] == "GET" else None) for one in scopes}
    assert {route.path: route.access.opens for _, route in GUARDED if route.access.opens} == OPENED_BY


def test_an_endpoint_that_does_not_say_cannot_become_a_route() -> None:
    with pytest.raises(TypeError, match="does not say who may call it"):
        GuardedRoute("/v1/admin/forgotten", lambda: None)


@pytest.fixture(scope="module")
def closed(installations: Installations, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """An application without open routes. Few calls of an authorised token change something, and none a token."""
    folder = tmp_path_factory.mktemp("closed")
    secrets = installations.copy_to(folder)
    settings = Settings(data_directory=folder, registry_poll_seconds=0.02, open_metrics=False)
    with running(settings, secrets) as service:
        yield service


@pytest.mark.parametrize(("method", "route"), ONE_OF_EACH_RULE, ids=named(ONE_OF_EACH_RULE))
def test_tokens_at_a_route_of_each_rule(closed: Service, method: str, route: GuardedRoute) -> None:
    service = closed

    def status(**headers: str | None) -> int:
        return service.client.request(method, path_of(route), headers=headers).status_code

    missing = service.client.request(method, path_of(route), headers={"Authorization": None})
    assert missing.status_code == 401
    assert missing.headers["WWW-Authenticate"].startswith("Bearer")
    assert missing.json()["error"]["field"] == "Authorization"
    unfit = {"Content-Type": "application/x-nothing", "Content-Encoding": "gzip", "Content-Length": "9" * 12}
    for header, value in unfit.items():  # what a route accepts is told to those who may use it
        assert status(Authorization=None, **{header: value}) == 401, header
        assert status(Authorization="Bearer ll_wrong", **{header: value}) == 401, header
    assert status(Authorization="Bearer ll_wrong") == 401
    assert status(Authorization=f"Basic {service.secrets['admin']}") == 401
    scope = route.access.scope
    for holder, secret in service.secrets.items():
        refused = status(Authorization=f"Bearer {secret}") == 403
        assert refused == (holder not in GRANTS[scope.value]), holder


@pytest.mark.parametrize("path", [*sorted(PUBLIC), "/metrics"])
def test_public_routes_need_no_token(shared: Service, path: str) -> None:
    expected = 307 if path == "/" else 200
    assert shared.client.get(path, headers={"Authorization": None}).status_code == expected


def test_open_access_opens_predictions_and_feedback_only(
    registered: None, serve: Callable[..., Service]
) -> None:
    service = serve(open_access=True, open_metrics=False)
    for method, route in GUARDED:
        answer = service.client.request(method, path_of(route), headers={"Authorization": None})
        assert (answer.status_code == 401) == (route.path not in OPEN_BY_SETTING), route.path
    assert (
        service.client.post("/v1/predict", content=png(), headers={"Authorization": None}).status_code == 200
    )


def test_revocation_reaches_the_worker(service: Service) -> None:
    header = service.header("predict")
    assert service.client.post("/v1/predict", content=png(), headers=header).status_code == 200
    service.store.tokens.revoke("predict-token", actor="test")
    eventually(lambda: service.client.post("/v1/predict", content=png(), headers=header).status_code == 401)


def test_a_new_token_works_at_once(service: Service) -> None:
    made = service.client.post("/v1/admin/tokens", json={"name": "fresh", "scopes": ["read"]})
    assert made.status_code == 201
    header = {"Authorization": f"Bearer {made.json()['secret']}"}
    assert service.client.get("/v1/admin/tokens", headers=header).status_code == 200
    assert "secret" not in service.client.get("/v1/admin/tokens").text
