"""Predictions in the console and over HTTP: found by filters and ids, and explained step by step."""

import re

import numpy as np
import pytest

from lifelong_core.store import LogEntry, NewLabel, Prediction, RequestKey, new_prediction_id
from tests.unit.service.conftest import CLASS_NAMES, COSTS, Service
from tests.unit.service.consoles import Console

PAGE = "/console/predictions"
API = "/v1/admin/predictions"
LOGITS = np.array([1.0, 0.0, 2.0], np.float32)


@pytest.fixture(scope="module")
def service(shared: Service) -> Service:
    store = shared.store
    store.environments.ensure("site-a", limit=9)
    model = store.models.get("linear")
    for k in range(60):
        one = Prediction(new_prediction_id(), model.id, "site-a", 1, k % 4, LOGITS, b"g" * 16)
        store.predictions.append([LogEntry((one,), RequestKey(model.id, "site-a", f"r{k}"), b"x")])
    store.labels.record([NewLabel(one.id, 2, "<lab>")], actor="ann")
    head = store.heads.get("linear", 1).head
    store.heads.publish("linear", head, environment="site-a", actor="ann")
    return shared


@pytest.fixture
def console(service: Service) -> Console:
    return Console(service)


def rows(page: str) -> list[str]:
    return re.findall(r'href="/console/predictions/([0-9a-f-]{36})"', page)


def test_pages_lead_from_the_newest_to_the_oldest(console: Console) -> None:
    found, path = [], f"{PAGE}?environment=site-a"
    while path:
        page = console.get(path).text
        found += rows(page)
        link = re.search(r'href="(/console/predictions\?[^"]*before=[^"]*)"', page)
        path = "" if link is None else link[1].replace("&amp;", "&")
    assert len(found) == len(set(found)) == 60
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("decision=malignant", 15),
        ("decision=3", 15),
        ("decision=abstain&model=linear@1", 15),
        ("labelled=true", 1),
        ("labelled=false&decision=abstain", 14),
        ("find=r7", 1),
        ("find=r7&environment=default", 0),
        ("since=2020-01-01T00:00&until=2021-01-01T00:00", 0),
    ],
)
def test_filters(console: Console, query: str, count: int) -> None:
    answer = console.get(f"{PAGE}?{query}")
    assert (answer.status_code, len(rows(answer.text))) == (200, count)


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("decision=elephant", 422, "by its number or its name"),
        ("environment=nowhere", 404, "nowhere"),
        ("model=other", 404, "other"),
        ("since=yesterday", 422, "since"),
        ("since=2021-01-01T00:00&until=2020-01-01T00:00", 422, "before `until`"),
        ("before=x", 422, "before"),
        ("before=ffffffff-ffff-ffff-ffff-ffffffffffff", 422, "id of a prediction"),
    ],
)
def test_a_wrong_filter_is_named(console: Console, query: str, status: int, said: str) -> None:
    answer = console.get(f"{PAGE}?{query}")
    assert (answer.status_code, 'role="alert"' in answer.text) == (status, True)
    assert said in answer.text


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ("before=ffffffff-ffff-ffff-ffff-ffffffffffff", 422, "before"),
        ("until=9999-12-31T23:59:59-14:00", 200, None),
    ],
)
def test_ids_and_times_behind_the_calendar(
    service: Service, query: str, status: int, field: str | None
) -> None:
    answer = service.client.get(f"{API}?{query}")
    assert (answer.status_code, answer.json().get("error", {}).get("field")) == (status, field)


def test_the_way_of_a_prediction_is_that_of_the_head(console: Console) -> None:
    store = console.service.store
    newest = console.service.client.get(f"{API}?limit=1").json()["predictions"][0]
    assert (newest["label"], newest["true_label"], newest["head_version"]) == ("abstain", "malignant", 1)
    found = console.get(f"{PAGE}?find={newest['prediction_id']}")
    assert (found.status_code, found.headers["Location"]) == (303, f"{PAGE}/{newest['prediction_id']}")
    document = console.service.client.get(f"{API}/{newest['prediction_id']}").json()
    assert (document["logits"], document["group"]) == (LOGITS.tolist(), (b"g" * 16).hex())
    head = store.heads.get("linear", 1).head
    way = document["decided"]
    scaled = (LOGITS - LOGITS.mean()) / np.asarray(head.temperature) + head.bias
    weights = np.exp(scaled)
    probabilities = weights / weights.sum()
    np.testing.assert_allclose(way["scaled"], scaled, rtol=1e-6)
    np.testing.assert_allclose(way["probabilities"], probabilities, rtol=1e-6)
    np.testing.assert_allclose(way["expected_costs"], probabilities @ np.array(COSTS), rtol=1e-6)
    assert way["decision"] == int(np.argmin(way["expected_costs"]))
    assert (document["active"]["head_version"], document["active"]["decision"]) == (2, way["decision"])
    page = console.get(f"{PAGE}/{newest['prediction_id']}").text
    for text in (
        "Decided: abstain",
        "Its label is malignant.",
        "Head 1, which decided",
        "Head 2, which is in force now",
        "The head in force now decides the same.",
        f"{way['expected_costs'][3]:.4g}",
        "&lt;lab&gt;",
        *CLASS_NAMES,
    ):
        assert text in page


def test_a_reader_sees_no_hash_of_a_group(console: Console) -> None:
    newest = console.service.client.get(f"{API}?limit=1").json()["predictions"][0]["prediction_id"]
    group = (b"g" * 16).hex()
    assert group in console.get(f"{PAGE}/{newest}").text
    assert group not in Console(console.service, scope="read").get(f"{PAGE}/{newest}").text
    read = console.service.client.get(f"{API}/{newest}", headers=console.service.header("read"))
    assert (read.status_code, read.json()["group"]) == (200, None)
    assert console.get(f"{PAGE}/{new_prediction_id()}").status_code == 404
    assert console.service.client.get(f"{API}?lable=true").status_code == 422
