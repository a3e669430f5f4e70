"""A CSV file against the real endpoint."""

from io import BytesIO
from typing import Any
from uuid import UUID, uuid4

from lifelong.client_messages import answer_of
from lifelong.label_import.rows import RejectedRow, read_rows
from lifelong.label_import.sending import ImportOutcome, LabelImport
from tests.unit.service.conftest import Service


class InProcessApi:
    """The client's calls, on the application in this process."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def post(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        return answer_of(self._service.client.post(path, json=document))


def send(
    service: Service, lines: list[str], *, dry_run: bool = False
) -> tuple[ImportOutcome, list[RejectedRow]]:
    rejected: list[RejectedRow] = []
    task = LabelImport(InProcessApi(service), rejected.append, dry_run=dry_run)
    return task.run(read_rows(BytesIO("\r\n".join(lines).encode("utf-8-sig")))), rejected


def counts(outcome: ImportOutcome) -> tuple[int, ...]:
    return outcome.stored, outcome.unchanged, outcome.corrected, outcome.unknown, outcome.refused


def test_a_file_is_stored_once_and_its_wrong_rows_are_named(service: Service) -> None:
    body = {"logits": [[1, 2, 3], [3, 2, 1], [0, 1, 0]], "request_id": "study"}
    answer = service.client.post("/v1/logits?environment=clinic-a", json=body).json()["predictions"]
    ids = [one["prediction_id"] for one in answer]
    lines = [
        "Prediction ID;Request ID;Row;Environment;Label;Source;Propensity",
        f"{ids[0]};;;;malignant;lab;0,25",
        ";study;1;clinic-a;1;;",
        ";study;;clinic-a;1;;",
        f"{ids[2]};;;;tumour;;",
        f"{uuid4()};;;;benign;;",
        ";study;0;nowhere;benign;;",
        f"{ids[2]};;;;;;",
        f"{ids[2]};;;;benign",
        "",
    ]
    planned, _ = send(service, lines, dry_run=True)
    assert counts(planned) == (2, 0, 0, 2, 3)
    outcome, rejected = send(service, lines)
    assert counts(outcome) == (2, 0, 0, 2, 3)
    assert outcome.unlabelled == 1
    assert [(row.line, row.reason) for row in rejected] == [
        (4, "ambiguous"),
        (5, "not_a_class"),
        (6, "unknown"),
        (7, "unknown"),
        (9, "malformed"),
    ]
    assert "benign, unclear, malignant" in rejected[1].message
    assert (rejected[1].prediction_id, rejected[3].request_id) == (ids[2], "study")
    again, _ = send(service, lines)
    assert counts(again) == (0, 2, 0, 2, 3)
    corrected, _ = send(service, ["prediction_id,label", f"{ids[0]},benign"])
    assert counts(corrected) == (0, 0, 1, 0, 0)
    first, second = service.store.labels.history(UUID(ids[0]))
    assert (first.label, first.source, first.propensity) == (2, "lab", 0.25)
    assert (second.label, second.propensity, second.actor) == (0, 0.25, "admin-token")
