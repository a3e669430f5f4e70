"""`lifelong feedback import`: report, exit status and files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from click.testing import CliRunner

from lifelong import client as api
from lifelong.cli import cli
from lifelong_core.values.errors import InvalidInputError, LifelongError, UnavailableError

KNOWN = [str(uuid4()) for _ in range(3)]
HEADER = "prediction_id,label\n"


class FeedbackDouble:
    """`/v1/feedback` of a service with the predictions KNOWN and the classes 0 and 1."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []
        self.refusal: httpx.Response | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.refusal is not None:
            return self.refusal
        labels = json.loads(request.content)["labels"]
        return httpx.Response(200, json={"labels": [self._answer(one) for one in labels]})

    @staticmethod
    def _answer(label: dict[str, Any]) -> dict[str, Any]:
        outcome = "stored" if label["prediction_id"] in KNOWN else "unknown"
        return {"prediction_id": label["prediction_id"], "outcome": outcome}


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FeedbackDouble:
    double, client = FeedbackDouble(), httpx.Client
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LIFELONG_TOKEN", raising=False)
    monkeypatch.setattr(
        api.httpx, "Client", lambda **options: client(transport=httpx.MockTransport(double), **options)
    )
    return double


@pytest.fixture
def run(service: FeedbackDouble) -> Callable[..., Any]:
    def run(*arguments: str, given: str | None = None, catches: bool = False) -> Any:
        return CliRunner().invoke(
            cli, ["feedback", "import", *arguments], input=given, catch_exceptions=catches
        )

    return run


def test_a_file_with_good_rows_only_ends_with_status_0(
    run: Callable[..., Any], service: FeedbackDouble, tmp_path: Path
) -> None:
    (tmp_path / "labels.csv").write_text(HEADER + "".join(f"{one},0\n" for one in KNOWN))
    result = run("labels.csv", "--token", "t", "--url", "clinic:3000", "--source", "lab")
    assert (result.exit_code, result.stdout) == (
        0,
        "3 stored, 0 unchanged, 0 corrected, 0 unknown, 0 refused.\n",
    )
    (request,) = service.requests
    assert str(request.url) == "http://clinic:3000/v1/feedback"
    assert request.headers["Authorization"] == "Bearer t"
    assert [one["source"] for one in json.loads(request.content)["labels"]] == ["lab"] * 3


def test_standard_input_without_a_token(run: Callable[..., Any], service: FeedbackDouble) -> None:
    result = run("-", "--report", "bad.csv", given=f"{HEADER}{KNOWN[0]},0\n{KNOWN[1]},\n")
    assert result.exit_code == 0
    assert "1 row without a label." in result.stdout
    assert "Authorization" not in service.requests[0].headers


def test_rows_that_were_not_stored_are_in_the_report(run: Callable[..., Any], tmp_path: Path) -> None:
    stranger = uuid4()
    (tmp_path / "labels.csv").write_text(f"{HEADER}{KNOWN[0]},0\n{stranger},0\nx,0\n")
    report = tmp_path / "bad.csv"
    report.write_text("old\n" * 99)
    report.chmod(0o644)
    result = run("labels.csv", "--report", "bad.csv")
    assert result.exit_code == 3
    assert "1 stored" in result.stdout
    assert "1 unknown, 1 refused" in result.stdout
    assert "line 3: unknown" in result.stderr
    assert report.read_text().splitlines() == [
        "line,reason,message,prediction_id,request_id",
        f"3,unknown,there is no such prediction.,{stranger},",
        "4,malformed,prediction_id: 'x' is not a UUID.,x,",
    ]
    assert report.stat().st_mode & 0o777 == 0o600


def test_json(run: Callable[..., Any], service: FeedbackDouble) -> None:
    result = run("-", "--json", "--dry-run", given=f"{HEADER}{KNOWN[0]},0\nx,0\n")
    assert result.exit_code == 3
    answer = json.loads(result.stdout)
    assert (answer["stored"], answer["refused"], answer["dry_run"]) == (1, 1, True)
    assert answer["examples"][0]["line"] == 3
    assert json.loads(service.requests[0].content)["dry_run"] is True


def test_a_dry_run_says_so(run: Callable[..., Any]) -> None:
    result = run("-", "--dry-run", given=f"{HEADER}{KNOWN[0]},0\n")
    assert result.stdout.startswith("Dry run, nothing was stored. It would be: 1 stored")


def test_a_wrong_header_sends_nothing(run: Callable[..., Any], service: FeedbackDouble) -> None:
    with pytest.raises(InvalidInputError, match="no column 'truth'"):
        run("-", given=f"prediction_id,truth\n{KNOWN[0]},0\n")
    assert service.requests == []


def test_options_that_would_spoil_the_import_are_refused(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(HEADER)
    for arguments, field in ((["--report", "labels.csv"], "--report"), (["--source", "s" * 65], "--source")):
        with pytest.raises(InvalidInputError) as refused:
            run("labels.csv", *arguments)
        assert refused.value.field == field
        assert (tmp_path / "labels.csv").read_text() == HEADER


def test_an_import_that_stops_says_how_far_it_came(run: Callable[..., Any], service: FeedbackDouble) -> None:
    down = httpx.Response(503, headers={"Retry-After": "7"}, json={"error": {"message": "outage."}})
    text = HEADER + f"{KNOWN[0]},0\n" * 500

    class Then(list[httpx.Request]):
        def append(self, request: httpx.Request) -> None:
            super().append(request)
            service.refusal = down if len(self) > 1 else None

    service.requests = Then()
    result = run("-", "--patience", "0s", given=f"{text}{KNOWN[0]},0\n", catches=True)
    assert isinstance(result.exception, UnavailableError)
    assert (result.exception.message, result.exception.retry_after_seconds) == ("outage.", 7)
    assert "Stopped after line 501: 500 stored" in result.stderr


@pytest.mark.parametrize(
    ("status", "kind"), [(401, LifelongError), (429, LifelongError), (502, UnavailableError)]
)
def test_answers_without_a_document_name_status_and_path(
    run: Callable[..., Any], service: FeedbackDouble, status: int, kind: type[LifelongError]
) -> None:
    service.refusal = httpx.Response(status, text="<html>")
    with pytest.raises(kind, match=f"/v1/feedback answered {status}"):
        run("-", "--patience", "0s", given=f"{HEADER}{KNOWN[0]},0\n")


def test_no_cell_of_the_report_is_a_formula(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("prediction_id,label\n=cmd|' /C calc'!A0,0\n")
    assert run("labels.csv", "--report", "bad.csv").exit_code == 3
    assert "'=cmd|" in (tmp_path / "bad.csv").read_text().splitlines()[1]
