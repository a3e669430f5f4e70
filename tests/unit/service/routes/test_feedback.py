"""True classes: by name or number, by prediction or request, once or repeatedly."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from lifelong_core.store import register_calibration
from lifelong_core.values.class_labels import class_index
from tests.unit.service.conftest import Service, calibration, png


def predict(service: Service, query: str = "") -> str:
    return service.client.post(f"/v1/predict{query}", content=png()).json()["prediction_id"]


def send(service: Service, **body: Any) -> Any:
    return service.client.post("/v1/feedback", json=body)


def labels_of(service: Service, environment: str = "default") -> dict[UUID, int]:
    model = service.store.models.get("linear")
    found = service.store.labels.newest_labelled(model.id, environment, limit=100, classes=3)
    return dict(zip(found.ids, found.labels.tolist(), strict=True))


@pytest.mark.parametrize("label", ["malignant", 2])
def test_by_prediction_id(service: Service, label: str | int) -> None:
    prediction = predict(service)
    assert send(service, prediction_id=prediction, label=label).json() == {
        "prediction_id": prediction,
        "outcome": "stored",
    }
    assert labels_of(service) == {UUID(prediction): 2}
    assert send(service, prediction_id=prediction, label=label).json()["outcome"] == "unchanged"
    assert send(service, prediction_id=prediction, label="benign").json()["outcome"] == "corrected"
    assert labels_of(service) == {UUID(prediction): 0}


def test_for_a_model_that_this_worker_has_not_seen_yet(
    registered: None, serve: Callable[..., Service]
) -> None:
    behind = serve(registry_poll_seconds=1.0)
    remote = behind.store.models.add("skin", "younger", kind="external", actor="test")
    register_calibration(behind.store, remote.reference, calibration(), actor="test")
    other = serve()
    row = other.client.post("/v1/logits?model=younger", json={"logits": [[1, 2, 3]]}).json()["predictions"][0]
    assert send(behind, prediction_id=row["prediction_id"], label=0).json()["outcome"] == "stored"


def test_by_request_id(service: Service) -> None:
    prediction = predict(service, "?request_id=r1")
    answer = send(service, request_id="r1", label="unclear").json()
    assert answer == {"prediction_id": prediction, "outcome": "stored"}


def test_a_request_id_of_several_environments_needs_the_environment(service: Service) -> None:
    predict(service, "?request_id=r1&environment=a")
    second = predict(service, "?request_id=r1&environment=b")
    answer = send(service, request_id="r1", label=0)
    assert answer.status_code == 409
    assert answer.json()["error"]["field"] == "environment"
    assert send(service, request_id="r1", environment="b", label=0).json()["prediction_id"] == second


def test_a_request_with_several_rows_needs_the_row(service: Service) -> None:
    body = {"logits": [[1, 2, 3], [3, 2, 1]], "request_id": "r1"}
    rows = service.client.post("/v1/logits", json=body).json()["predictions"]
    assert send(service, request_id="r1", label=0).json()["error"]["field"] == "row"
    answer = send(service, request_id="r1", row=1, label=0).json()
    assert answer["prediction_id"] == rows[1]["prediction_id"]
    assert send(service, request_id="r1", row=2, label=0).status_code == 404


def test_several_at_once_with_an_outcome_each(service: Service) -> None:
    known, unknown = predict(service), str(uuid4())
    items = [
        {"prediction_id": known, "label": "benign"},
        {"prediction_id": unknown, "label": "benign"},
        {"request_id": "never", "label": 1},
    ]
    answer = send(service, labels=items)
    assert answer.status_code == 200
    assert answer.json()["labels"] == [
        {"prediction_id": known, "outcome": "stored"},
        {"prediction_id": unknown, "outcome": "unknown"},
        {"prediction_id": None, "outcome": "unknown"},
    ]


UNKNOWN = [str(uuid4()), "ffffffff-ffff-7fff-bfff-ffffffffffff", str(UUID(int=0)), str(UUID(int=2**128 - 1))]


def test_a_single_unknown_prediction_is_not_found_and_has_no_history(service: Service) -> None:
    for identifier in UNKNOWN:
        for answer in (send(service, prediction_id=identifier, label=0), history_of(service, identifier)):
            assert (answer.status_code, answer.json()["error"]["field"]) == (404, "prediction_id"), identifier
    assert send(service, request_id="never", label=0).json()["error"]["field"] == "request_id"


def test_wrong_feedback_names_the_field(service: Service) -> None:
    prediction = predict(service)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"label": "nonsense"}, "label"),
        ({"label": 3}, "label"),
        ({"label": -1}, "label"),
        ({"label": True}, "label"),
        ({"label": 1.5}, "label"),
        ({"prediction_id": "no id"}, "prediction_id"),
        ({"request_id": "both"}, "body"),
        ({"lable": 1}, "lable"),
        ({"source": "s" * 65}, "source"),
        ({"source": "a\0b"}, "source"),
    ]
    for change, field in changes:
        answer = send(service, **{"prediction_id": prediction, "label": 0} | change)
        assert answer.status_code == 422, change
        assert answer.json()["error"]["field"].startswith(field), change
        assert answer.json()["error"]["hint"], change
    assert labels_of(service) == {}


def test_one_wrong_label_among_several_stores_none(service: Service) -> None:
    items = [{"prediction_id": predict(service), "label": label} for label in ("benign", "labels")]
    answer = send(service, labels=items)
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "labels.1.label"
    assert labels_of(service) == {}


def test_as_many_labels_as_the_limit_and_one_more(service: Service) -> None:
    item = {"prediction_id": str(uuid4()), "label": 0}
    assert send(service, labels=[item] * 1000).status_code == 200
    assert send(service, labels=[item] * 1001).json()["error"]["field"] == "labels"


def history_of(service: Service, prediction: str) -> Any:
    return service.client.get(f"/v1/admin/predictions/{prediction}/labels")


def test_the_history_names_classes_and_actors(service: Service) -> None:
    prediction = predict(service)
    assert history_of(service, prediction).json() == {
        "prediction_id": prediction,
        "model": "linear@1",
        "environment": "default",
        "revisions": [],
    }
    send(service, prediction_id=prediction, label="malignant", source="pathology")
    lis = {"prediction_id": prediction, "label": 0, "propensity": 0.25}
    service.client.post("/v1/feedback", json=lis, headers=service.header("feedback"))
    first, second = history_of(service, prediction).json()["revisions"]
    assert (
        first.items()
        >= {
            "revision": 1,
            "previous_label": None,
            "previous_name": None,
            "label": 2,
            "name": "malignant",
            "propensity": None,
            "source": "pathology",
            "actor": "admin-token",
        }.items()
    )
    assert (
        second.items()
        >= {
            "revision": 2,
            "previous_label": 2,
            "previous_name": "malignant",
            "label": 0,
            "name": "benign",
            "propensity": 0.25,
            "source": "",
            "actor": "feedback-token",
        }.items()
    )
    assert first["recorded_at"] < second["recorded_at"]


def test_labels_without_a_token_are_anonymous(registered: None, serve: Callable[..., Service]) -> None:
    service = serve(open_access=True)
    prediction = predict(service)
    service.client.post(
        "/v1/feedback", json={"prediction_id": prediction, "label": 0}, headers={"Authorization": ""}
    )
    assert [one["actor"] for one in history_of(service, prediction).json()["revisions"]] == ["anonymous"]


def test_a_propensity_that_is_no_positive_probability_is_refused(service: Service) -> None:
    prediction = predict(service)
    for propensity in (0, -0.1, 1.01, True, "0.5", "nan"):
        answer = send(service, prediction_id=prediction, label=0, propensity=propensity)
        assert (answer.status_code, answer.json()["error"]["field"]) == (422, "propensity"), propensity
    assert labels_of(service) == {}


def test_a_propensity_is_stored(service: Service) -> None:
    for propensity in (1, 0.001, None):
        prediction = predict(service)
        assert send(service, prediction_id=prediction, label=0, propensity=propensity).status_code == 200
        (revision,) = history_of(service, prediction).json()["revisions"]
        assert revision["propensity"] == propensity


def test_of_a_partial_request_refused_labels_are_answered_one_by_one(service: Service) -> None:
    predictions = [predict(service) for _ in range(3)]
    body = {"logits": [[1, 2, 3], [3, 2, 1]], "request_id": "two rows"}
    service.client.post("/v1/logits", json=body)
    predict(service, "?request_id=twice&environment=a")
    predict(service, "?request_id=twice&environment=b")
    items = [
        {"prediction_id": predictions[0], "label": "benign"},
        {"prediction_id": predictions[1], "label": "nonsense"},
        {"request_id": "two rows", "label": 0},
        {"request_id": "twice", "label": 0},
        {"request_id": "r", "model": "nowhere", "label": 0},
        {"prediction_id": str(uuid4()), "label": 0},
        {"prediction_id": predictions[2], "label": 1},
    ]
    answer = send(service, labels=items, partial=True)
    assert answer.status_code == 200
    results = answer.json()["labels"]
    assert [one["outcome"] for one in results] == [
        "stored",
        "refused",
        "refused",
        "refused",
        "refused",
        "unknown",
        "stored",
    ]
    errors = [one["error"] for one in results if one["outcome"] == "refused"]
    assert [(one["code"], one["field"]) for one in errors] == [
        ("invalid_input", "labels.1.label"),
        ("invalid_input", "labels.2.row"),
        ("conflict", "labels.3.environment"),
        ("not_found", "labels.4.model"),
    ]
    assert "benign, unclear, malignant" in errors[0]["hint"]
    assert labels_of(service) == {UUID(predictions[0]): 0, UUID(predictions[2]): 1}


def test_a_dry_run_stores_nothing_and_tells_the_outcomes(service: Service) -> None:
    one, two = predict(service), predict(service)
    send(service, prediction_id=one, label=0)
    items = [
        {"prediction_id": one, "label": 0},
        {"prediction_id": one, "label": 1},
        {"prediction_id": two, "label": 1},
        {"prediction_id": str(uuid4()), "label": 1},
    ]
    answer = send(service, labels=items, dry_run=True).json()["labels"]
    assert [item["outcome"] for item in answer] == ["unchanged", "corrected", "stored", "unknown"]
    assert labels_of(service) == {UUID(one): 0}
    assert len(history_of(service, one).json()["revisions"]) == 1


@pytest.mark.parametrize(
    ("names", "label", "index"),
    [
        (("benign", "malignant"), "1", 1),
        (("benign", "malignant"), "2", None),
        (("benign", "malignant"), "-1", None),
        (("benign", "malignant"), " benign", None),
        (("1", "2", "3"), "1", 0),
        (("1", "2", "3"), 1, 0),
        (("1", "2", "3"), 0, None),
        (("benign", "malignant"), 1, 1),
        (("L\u00e4sion", "b"), "La\u0308sion", 0),
        (("La\u0308sion", "b"), "L\u00e4sion", 0),
        (("1", "2", "3"), "0", None),
        (("grade 1", "2"), "0", None),
        (("benign", "malignant"), "\u0661", None),
        (("benign", "malignant"), "9" * 30, None),
    ],
)
def test_a_number_is_an_index_only_where_no_class_has_such_a_name(
    names: tuple[str, ...], label: int | str, index: int | None
) -> None:
    assert class_index(label, names) == index
