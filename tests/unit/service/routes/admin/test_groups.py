"""Erasing a group over HTTP."""

import logging

import pytest

from lifelong_core.store.lifecycle import erasure
from lifelong_core.store.lifecycle.privacy import rotate_group_key
from tests.unit.service.conftest import Service, png


@pytest.fixture(autouse=True)
def no_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure, "SETTLING_SECONDS", 0)


def test_a_group_is_erased_and_is_in_no_log(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    client = service.client
    for number, group in enumerate(("patient-1", "patient-1", "patient-2")):
        answer = client.post(f"/v1/predict?group={group}&request_id=r{number}", content=png())
        assert answer.status_code == 200
    # The worker that is asked need not know the key that is current by now.
    rotate_group_key(service.settings.resolved_group_key_file)
    with caplog.at_level(logging.DEBUG):
        answer = client.post("/v1/admin/groups/erase", json={"group": "patient-1"})
    counts = {"predictions": 2, "labels": 0, "requests": 2, "label_revisions": 0}
    assert (answer.status_code, answer.json()) == (200, counts)
    assert "patient-1" not in caplog.text
    assert service.logged() == 1
    newest = client.get("/v1/admin/audit?limit=1").json()["audit"][0]
    assert (newest["actor"], newest["action"]) == ("admin-token", "groups.erased")
    assert "patient" not in str(newest)


def test_a_wrong_body_names_the_field_and_says_nothing_of_what_was_sent(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    for body in ({}, {"group": ""}, {"group": "x" * 257}, {"group": 7}, {"group": "a", "more": 1}):
        answer = service.client.post("/v1/admin/groups/erase", json=body)
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] in ("group", "more")
        assert "xxx" not in answer.text + caplog.text
