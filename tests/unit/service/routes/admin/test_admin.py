"""Set-up over HTTP: tasks, models, calibration, heads; every change is in the audit log."""

import json
import zipfile
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import onnx
import pytest

from lifelong_core.deploy import LabeledLogits
from tests.unit.service import onnx_graphs
from tests.unit.service.conftest import CLASS_NAMES, COSTS, GREY, Service, calibration, png
from tests.unit.service.waiting import eventually

DOCUMENT = {"task": "skin", "name": "fresh", "preprocessing": GREY.model_dump(mode="json")}


def add_model(service: Service, graph: bytes, **changes: Any) -> Any:
    document = json.dumps(DOCUMENT | changes)
    return service.client.post("/v1/admin/models", data={"document": document}, files={"onnx": graph})


def test_from_an_empty_database_to_a_served_model(serve: Callable[..., Service]) -> None:
    service = serve()
    client = service.client
    task = client.post("/v1/admin/tasks", json={"name": "skin", "classes": CLASS_NAMES, "costs": COSTS})
    assert task.status_code == 201
    model = add_model(service, onnx_graphs.linear())
    assert model.status_code == 201, model.text
    assert (model.json()["model"], model.json()["promoted"]) == ("fresh@1", False)
    images = [("images", (str(value), png(value), "image/png")) for value in (1, 2, 250)]
    rows = client.post("/v1/admin/models/fresh/logits", files=images).json()["logits"]
    scaled = (np.array([1, 2, 250]) / 255 - 0.5) / 0.5
    expected = scaled[:, None] * onnx_graphs.linear_weights().sum(axis=0)
    np.testing.assert_allclose(rows, expected, atol=1e-4)
    assert service.logged() == 0
    added = client.post(
        "/v1/admin/models/fresh/calibration-sets",
        content=calibration().to_bytes(),
        headers={"Content-Type": "application/x-npz"},
    )
    assert added.status_code == 201
    assert (added.json()["head_version"], added.json()["samples"]) == (1, 180)
    eventually(lambda: client.post("/v1/predict", content=png()).status_code == 200)
    assert client.get("/v1/admin/models/fresh").json()["heads"] == {"*": 1}
    assert client.get("/v1/admin/tasks").json()["tasks"][0]["promoted_model"] == "fresh@1"
    actions = [entry["action"] for entry in client.get("/v1/admin/audit").json()["audit"]]
    assert {"tasks.add", "models.add", "models.promote", "heads.publish"} <= set(actions)
    assert client.get("/v1/admin/audit?limit=1").json()["audit"][0]["actor"] == "admin-token"


def test_calibration_as_json(service: Service) -> None:
    labelled = calibration(3)
    body = {"logits": labelled.logits.tolist(), "labels": labelled.labels.tolist()}
    answer = service.client.post("/v1/admin/models/linear/calibration-sets", json=body)
    assert answer.status_code == 201
    sets = service.client.get("/v1/admin/models/linear/calibration-sets").json()
    assert sets["active"] == answer.json()["id"]
    assert sorted(item["id"] for item in sets["calibration_sets"])[-1] == sets["active"]
    one = service.client.get(f"/v1/admin/models/linear/calibration-sets/{sets['active']}").json()
    assert one["prevalence"] == pytest.approx([1 / 3] * 3)
    assert service.client.get(f"/v1/admin/models/nan/calibration-sets/{sets['active']}").status_code == 404


def test_wrong_calibration_sets(service: Service) -> None:
    for body, kind, status in (
        (b"garbage", "application/x-npz", 422),
        (b"{}", "application/json", 422),
        (json.dumps({"logits": [[1, 2]], "labels": [0]}).encode(), "application/json", 422),
        (json.dumps({"logits": [[1, 2, 3]], "labels": [7]}).encode(), "application/json", 422),
        (b"x", "text/plain", 415),
    ):
        answer = service.client.post(
            "/v1/admin/models/linear/calibration-sets", content=body, headers={"Content-Type": kind}
        )
        assert answer.status_code == status
        assert answer.json()["error"]["field"]


@pytest.mark.parametrize("method", ["auto", "ACC"])
def test_logits_that_tell_no_class_apart_are_refused_before_their_head_serves(
    registered: None, serve: Callable[..., Service], method: str
) -> None:
    service = serve(quantifier=method)
    path = "/v1/admin/models/linear"
    before = [service.client.get(f"{path}/{what}").json() for what in ("heads", "calibration-sets")]
    body = {"logits": [[0.5, 1.0, 2.0]] * 60, "labels": [0, 1, 2] * 20}
    answer = service.client.post(f"{path}/calibration-sets", json=body)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == ("unidentifiable", "logits")
    assert "cannot tell" in error["message"]
    assert [service.client.get(f"{path}/{what}").json() for what in ("heads", "calibration-sets")] == before
    lacking = service.client.post(f"{path}/calibration-sets", json=body | {"labels": [0, 1] * 30})
    assert (lacking.status_code, lacking.json()["error"]["field"]) == (422, "labels")


def test_classes_that_mean_probabilities_hide_but_their_spread_shows_are_taken(service: Service) -> None:
    labels = np.arange(600) % 3
    # 2 and 1 look alike to the softmax, which never sees more than e^-12 of either
    spread = np.random.default_rng(3).normal(size=600) * np.array([1.0, 0.3, 2.0])[labels]
    logits = np.stack([np.full(600, 15.0), spread, -spread], axis=1)
    body = {"logits": logits.tolist(), "labels": labels.tolist()}
    path = "/v1/admin/models/linear/calibration-sets"
    # no head makes anything of it, so the report refuses it; a quantifier that sees the spread does
    assert service.client.post(path, json=body).json()["error"]["code"] == "calibration_refused"
    answer = service.client.post(f"{path}?force_reason=the spread counts", json=body)
    assert answer.status_code == 201, answer.text


def test_an_npz_that_unpacks_to_too_much_is_refused(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_labelled_bytes=100_000)
    file = BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("logits.npy", bytes(200_000))
    answer = service.client.post(
        "/v1/admin/models/linear/calibration-sets",
        content=file.getvalue(),
        headers={"Content-Type": "application/x-npz"},
    )
    assert answer.status_code == 413


def test_wrong_models_leave_nothing(service: Service) -> None:
    before = service.client.get("/v1/admin/models").json()
    for graph, changes, status, field in (
        (b"garbage", {}, 422, "onnx"),
        (onnx_graphs.linear(classes=5), {}, 422, "onnx"),
        (onnx_graphs.two_outputs(), {}, 422, "onnx"),
        (onnx_graphs.linear(), {"preprocessing": {"colour": "green"}}, 422, "preprocessing.colour"),
        (onnx_graphs.linear(), {"task": "nothing"}, 404, "task"),
        (onnx_graphs.linear(), {"name": "Not Legal"}, 422, "name"),
        (onnx_graphs.linear(), {"kind": "external"}, 422, "kind"),
        (b"", {}, 422, "onnx"),
    ):
        answer = add_model(service, graph, **changes)
        assert answer.status_code == status
        assert answer.json()["error"]["field"] == field
        assert service.client.get("/v1/admin/models").json() == before


def test_external_data_comes_from_the_upload_alone(service: Service) -> None:
    model = onnx.load_from_string(onnx_graphs.linear())
    tensor = model.graph.initializer[0]
    weights = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = 1
    tensor.external_data.add(key="location", value="m.onnx.data")
    document = json.dumps(DOCUMENT)

    def send(*data: tuple[str, bytes]) -> Any:
        parts = [("onnx", ("m.onnx", model.SerializeToString()))]
        parts += [("external_data", one) for one in data]
        return service.client.post("/v1/admin/models", data={"document": document}, files=parts)

    for refused in (send(), send(("other.data", weights)), send(("../m.onnx.data", weights))):
        assert (refused.status_code, refused.json()["error"]["field"]) == (422, "external_data")
        assert refused.json()["error"]["hint"]
    assert send(("m.onnx.data", weights), ("m.onnx.data", weights)).status_code == 422
    added = send(("m.onnx.data", weights))
    assert added.status_code == 201
    assert weights in service.store.artifacts.get(added.json()["artifact"])
    rows = service.client.post("/v1/admin/models/fresh/logits", files=[("images", png(128))]).json()["logits"]
    expected = (np.full((1, onnx_graphs.EDGE**2), 128 / 255) - 0.5) / 0.5 @ onnx_graphs.linear_weights()
    np.testing.assert_allclose(rows, expected, atol=1e-5)


def test_model_size_limit(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(maximum_model_bytes=500)
    answer = add_model(service, onnx_graphs.linear())
    assert answer.status_code == 413
    assert "LIFELONG_MAXIMUM_MODEL_BYTES" in answer.json()["error"]["hint"]


def test_the_dry_run_names_the_bad_image(service: Service) -> None:
    files = [("images", ("a", png(), "image/png")), ("images", ("b", b"text", "image/png"))]
    answer = service.client.post("/v1/admin/models/linear/logits", files=files)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "images.1"
    external = service.client.post("/v1/admin/models/remote/logits", files=files[:1])
    assert external.status_code == 422
    assert service.client.post("/v1/admin/models/linear/logits", files={"other": b"x"}).status_code == 422


def test_publish_show_and_roll_back(service: Service) -> None:
    client = service.client
    old = client.get("/v1/admin/models/linear/heads/1").json()
    document = old["head"] | {"bias": [3.0, 0.0, 0.0]}
    for environment in (None, "site-a"):
        answer = client.post(
            "/v1/admin/models/linear/heads", json={"head": document, "environment": environment}
        )
        assert answer.status_code == 201, answer.text
    assert client.get("/v1/admin/models/linear").json()["heads"] == {"*": 2, "site-a": 3}

    def version(environment: str) -> int:
        return client.post(f"/v1/predict?environment={environment}", content=png()).json()["head_version"]

    eventually(lambda: version("site-a") == 3)
    assert version("elsewhere") == 2
    back = client.post("/v1/admin/models/linear/heads/rollback", json={"environment": "site-a"})
    assert back.json()["version"] == 2
    eventually(lambda: version("site-a") == 2)
    assert client.post("/v1/admin/models/linear/heads/rollback", json={}).json()["version"] == 1
    eventually(lambda: version("elsewhere") == 1)
    listed = client.get("/v1/admin/models/linear/heads").json()
    assert [item["version"] for item in listed["heads"]] == [1, 2, 3]
    assert [item["reason"] for item in listed["activations"]] == ["publish", "publish", "rollback"]
    refused = client.post("/v1/admin/models/linear/heads/rollback", json={})
    assert refused.status_code == 409


def test_a_worse_version_is_promoted_only_with_a_reason(service: Service) -> None:
    client, rng = service.client, np.random.default_rng(8)
    labels = np.arange(300) % 3
    for version, noise in ((1, 0.5), (2, 3.0)):
        client.post("/v1/admin/models", json={"task": "skin", "name": "far", "kind": "external"})
        logits = 3 * np.eye(3)[labels] + noise * rng.normal(size=(300, 3))
        path = f"/v1/admin/models/far@{version}"
        document = {"logits": logits.tolist(), "labels": labels.tolist()}
        added = client.post(f"{path}/calibration-sets", json=document)
        assert added.status_code == 201, added.text
        if version == 1:
            promoted = client.post(f"{path}/promote", params={"force_reason": "a test"})
            assert promoted.status_code == 200, promoted.text
    codes = [finding["code"] for finding in added.json()["report"]["findings"]]
    assert "worse_than_promoted" in codes
    refused = client.post(f"{path}/promote")
    assert refused.status_code == 409
    assert "far@2 does worse than the promoted far@1 on its set" in refused.json()["error"]["message"]
    assert client.post(f"{path}/promote", params={"because": "x"}).status_code == 422
    assert client.post(f"{path}/promote", params={"force_reason": "fewer slides"}).json()["promoted"] is True


def test_a_rollback_names_the_calibration_set_that_it_brings_back(service: Service) -> None:
    client, path = service.client, "/v1/admin/models/linear/calibration-sets"
    first = client.get(path).json()["active"]
    rng = np.random.default_rng(8)
    labels = np.arange(300) % 3
    logits = 3 * np.eye(3)[labels] + rng.normal(size=(300, 3))
    document = {"logits": logits.tolist(), "labels": labels.tolist()}
    added = client.post(path, params={"force_reason": "a test"}, json=document)
    assert added.status_code == 201, added.text
    second = added.json()["id"]
    back = client.post("/v1/admin/models/linear/heads/rollback", json={}).json()
    assert (back["fitted_on"], back["active_calibration_set"]) == (first, first)
    assert f"Its calibration set {first} is the active one" in back["calibration"]
    assert client.get(path).json()["active"] == first
    chosen = client.post(f"{path}/{second}/activate")
    assert (chosen.status_code, chosen.json()["id"]) == (200, second)
    assert f"fitted on set {first}" in chosen.json()["default_head"]
    assert client.get(path).json()["active"] == second
    assert client.post(f"{path}/{second}/activate").status_code == 409
    assert client.post(f"{path}/999/activate").status_code == 404


def test_roll_back_to_a_stated_version(service: Service) -> None:
    path = "/v1/admin/models/linear/heads"
    document = service.client.get(f"{path}/1").json()["head"]
    for bias in (3.0, 4.0):
        assert (
            service.client.post(path, json={"head": document | {"bias": [bias, 0.0, 0.0]}}).status_code == 201
        )
    back = service.client.post(f"{path}/rollback", json={"to_version": 1, "expected_sequence": 3})
    assert (back.status_code, back.json()["version"]) == (200, 1)
    for version, status in ((1, 409), (4, 404), (0, 422), ("one", 422)):
        refused = service.client.post(f"{path}/rollback", json={"to_version": version})
        assert (refused.status_code, refused.json()["error"]["field"]) == (status, "to_version")


@pytest.mark.parametrize("call", ["", "/rollback", "/pin", "/unpin"])
def test_the_empty_name_is_not_the_default_head(service: Service, call: str) -> None:
    path = "/v1/admin/models/linear/heads"
    head = service.client.get(f"{path}/1").json()["head"]
    service.client.post(path, json={"head": head})
    if call == "/unpin":
        service.client.post(f"{path}/pin", json={"reason": "held"})
    before = service.client.get(path).json()
    further: dict[str, object] = {"": {"head": head}, "/pin": {"reason": "why"}}.get(call, {})
    refused = service.client.post(f"{path}{call}", json={"environment": "", **further})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "environment")
    assert service.client.get(path).json() == before


def test_publishing_over_somebody_elses_change_is_a_conflict(service: Service) -> None:
    head = service.client.get("/v1/admin/models/linear/heads/1").json()["head"]
    path = "/v1/admin/models/linear/heads"
    assert service.client.post(path, json={"head": head, "expected_sequence": 1}).status_code == 201
    assert service.client.post(path, json={"head": head, "expected_sequence": 1}).status_code == 409


@pytest.mark.parametrize(("call", "status"), [("rollback", 200), ("pin", 201), ("unpin", 200)])
def test_changes_of_a_head_that_changed_meanwhile_are_a_conflict(
    service: Service, call: str, status: int
) -> None:
    path = "/v1/admin/models/linear/heads"
    head = service.client.get(f"{path}/1").json()["head"]
    assert service.client.post(path, json={"head": head}).status_code == 201
    if call == "unpin":
        service.client.post(f"{path}/pin", json={"reason": "held"})
    reason = {"reason": "held"} if call == "pin" else {}
    refused = service.client.post(f"{path}/{call}", json={"expected_sequence": 1} | reason)
    assert (refused.status_code, refused.json()["error"]["field"]) == (409, "expected_sequence")
    assert service.client.post(f"{path}/{call}", json={"expected_sequence": 2} | reason).status_code == status


def test_only_the_head_that_is_meant_is_published(service: Service) -> None:
    path = "/v1/admin/models/linear/heads"
    shown = service.client.get(f"{path}/1").json()
    refused = service.client.post(path, json={"head": shown["head"], "digest": "0" * 64})
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "digest")
    again = service.client.post(path, json={"head": shown["head"], "digest": shown["digest"]})
    assert again.status_code == 201


def test_a_head_of_another_model_is_refused(service: Service) -> None:
    other = service.client.get("/v1/admin/models/remote/heads/1").json()["head"]
    answer = service.client.post("/v1/admin/models/linear/heads", json={"head": other})
    assert answer.status_code == 422
    assert "calibration set of remote@1" in answer.json()["error"]["message"]


def test_wrong_heads(service: Service) -> None:
    for change, field in (
        ({"costs": [[0, 1]]}, "costs"),
        ({"temperature": -1}, "temperature"),
        ({"class_names": ["x", "y", "z"]}, "head"),
    ):
        head = service.client.get("/v1/admin/models/linear/heads/1").json()["head"] | change
        answer = service.client.post("/v1/admin/models/linear/heads", json={"head": head})
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == field


def test_what_does_not_exist_is_not_found(service: Service) -> None:
    for path in (
        "/v1/admin/models/nothing",
        "/v1/admin/models/nothing/heads",
        "/v1/admin/models/nothing/calibration-sets",
        "/v1/admin/models/linear/heads/9",
        "/v1/admin/cycles?model=nothing",
    ):
        assert service.client.get(path).status_code == 404


def test_wrong_numbers(service: Service) -> None:
    for path, field in (
        ("/v1/admin/audit?limit=0", "limit"),
        ("/v1/admin/audit?limit=1001", "limit"),
        ("/v1/admin/audit?before=99999999999999999999", "before"),
        ("/v1/admin/models/linear/heads/99999999999999999999", "version"),
        ("/v1/admin/models/linear/heads/x", "version"),
    ):
        answer = service.client.get(path)
        assert answer.status_code == 422
        assert answer.json()["error"]["field"] == field


def test_lists(service: Service) -> None:
    client = service.client
    client.post("/v1/predict?environment=site-a", content=png())
    assert client.get("/v1/admin/environments").json()["environments"] == ["default", "site-a"]
    assert client.get("/v1/admin/cycles?model=linear&environment=site-a&limit=1000").json() == {"cycles": []}
    assert [item["model"] for item in client.get("/v1/admin/models").json()["models"]] == [
        "linear@1",
        "nan@1",
        "table@1",
        "remote@1",
    ]
    revoked = client.request("DELETE", "/v1/admin/tokens/read-token").json()
    assert revoked["revoked_at"]


def posted(service: Service, labelled: LabeledLogits, query: str = "") -> Any:
    return service.client.post(
        f"/v1/admin/models/linear/calibration-sets{query}",
        content=labelled.to_bytes(),
        headers={"Content-Type": "application/x-npz"},
    )


def test_a_new_set_is_answered_with_old_head_against_new(service: Service) -> None:
    answer = posted(service, calibration(3)).json()
    report = answer["report"]
    assert (answer["old_head_version"], answer["head_version"]) == (1, 2)
    assert report["verdict"] == "accepted"
    assert report["change"]["accuracy"]["low"] < 0.05 < report["old"]["accuracy"]["low"]
    assert "linear@1" in answer["serving"]


def test_a_dry_run_stores_nothing(service: Service) -> None:
    before = service.store.registry()
    answer = posted(service, calibration(3), "?dry_run=true")
    assert (answer.status_code, answer.json()["dry_run"]) == (200, True)
    swapped = LabeledLogits(calibration(3).logits, 2 - calibration(3).labels)
    refused, forced = (
        posted(service, swapped, f"?dry_run=true{reason}").json()
        for reason in ("", "&force_reason=read again")
    )
    assert (answer.json()["outcome"], refused["outcome"], forced["outcome"]) == (
        "published",
        "refused",
        "forced",
    )
    assert refused["report"]["verdict"] == forced["report"]["verdict"] == "refused"
    blank = posted(service, swapped, "?dry_run=true&force_reason=%20")
    assert (blank.status_code, blank.json()["error"]["field"]) == (422, "force_reason")
    assert service.store.registry() == before
    misspelt = posted(service, calibration(3), "?dry-run=true")
    assert (misspelt.status_code, misspelt.json()["error"]["field"]) == (422, "dry-run")
    assert service.store.registry() == before


def test_a_refused_set_is_answered_with_its_figures_and_taken_with_a_reason(service: Service) -> None:
    swapped = LabeledLogits(calibration(3).logits, 2 - calibration(3).labels)
    answer = posted(service, swapped)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == ("calibration_refused", "labels")
    assert "benign and malignant look swapped" in error["message"]
    assert "force_reason" in error["hint"]
    assert error["details"]["new"]["accuracy"]["value"] < 0.6
    assert error["details"]["old_head_version"] == 1
    forced = posted(service, swapped, "?force_reason=labels were read again")
    assert forced.status_code == 201
    audit = service.client.get("/v1/admin/audit?limit=20").json()["audit"]
    (entry,) = [one for one in audit if one["details"].get("force_reason")]
    assert (entry["actor"], entry["details"]["force_reason"]) == ("admin-token", "labels were read again")
    assert entry["details"]["report"]["verdict"] == "refused"


def test_probabilities_are_refused_wherever_logits_are_expected(service: Service) -> None:
    rows = np.exp(calibration(3).logits)
    rows /= rows.sum(axis=1, keepdims=True)
    sent = {
        "/v1/logits": {"model": "remote", "logits": rows[:1].tolist()},
        "/v1/admin/models/linear/calibration-sets": {
            "logits": rows.tolist(),
            "labels": calibration(3).labels.tolist(),
        },
    }
    for path, body in sent.items():
        answer = service.client.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, "logits")
        assert "got probabilities" in answer.json()["error"]["message"]
    rounded = {"model": "remote", "logits": [[0.7, 0.2, 0.1]] * 9}
    assert service.client.post("/v1/logits", json=rounded).status_code == 422
    logarithms = {"model": "remote", "logits": np.log(rows).tolist()}
    assert service.client.post("/v1/logits", json=logarithms).status_code == 200
