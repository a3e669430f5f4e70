"""Validations with uncertainties over HTTP: from a labelled set by a job to result, report and console."""

from io import BytesIO
from typing import Any

import httpx
import numpy as np
import pytest

from lifelong_core.deploy import LabeledLogits
from lifelong_core.store.heads.registration import register_calibration
from lifelong_core.values.arrays import softmax
from lifelong_monitor.jobs.kinds import validate
from tests.unit.design.interviews import ALL_ALIKE
from tests.unit.service.conftest import Service
from tests.unit.service.consoles import Console
from tests.unit.service.routes.admin.test_interviews import ANSWERS
from tests.unit.service.routes.test_operations import error_of

PATH = "/v1/admin/models/two/validations"
NPZ = {"Content-Type": "application/x-npz"}
SIZE = 80
RNG = np.random.default_rng(0)
LABELS = np.arange(SIZE) % 2
LOGITS = (np.eye(2)[LABELS] * 2 + RNG.normal(size=(SIZE, 2))).astype(np.float32)
MEMBERS = [(LOGITS + RNG.normal(size=LOGITS.shape)).astype(np.float32) for _ in range(3)]
UNCERTAIN = RNG.gamma(1, size=SIZE)


@pytest.fixture
def binary(service: Service) -> Service:
    """A task of two classes with a recommendation and the model two@1."""
    service.store.tasks.add("binary", ["benign", "malignant"], [[0, 1], [1, 0]], actor="test")
    model = service.store.models.add("binary", "two", kind="external", actor="test")
    register_calibration(
        service.store, model.reference, LabeledLogits(LOGITS[::-1], LABELS[::-1]), actor="test"
    )
    answer = service.client.post(
        "/v1/admin/tasks/binary/recommendations", json={"fingerprint": {"number_of_classes": 2} | ALL_ALIKE}
    )
    assert answer.status_code == 201, answer.text
    return service


def npz(**arrays: Any) -> dict[str, Any]:
    file = BytesIO()
    np.savez(file, **{"logits": LOGITS, "labels": LABELS, **arrays})
    return {"content": file.getvalue(), "headers": NPZ}


def document(**given: Any) -> dict[str, Any]:
    return {"json": {"logits": LOGITS.tolist(), "labels": LABELS.tolist(), **given}}


def members(number: int = 3) -> dict[str, Any]:
    return {f"logits_{place}": MEMBERS[place % 3] for place in range(1, number + 1)}


def done(service: Service, query: str, **body: Any) -> tuple[str, dict[str, Any]]:
    """The address of a job and its result."""
    answer = service.client.post(f"{PATH}?replicates=100{query}", **body)
    assert answer.status_code == 202, answer.text
    job = service.store.jobs.claim("test", lease_seconds=60)
    service.store.jobs.succeed(job, validate.work(service.store, job))
    path = f"/v1/admin/jobs/{job.id}"
    return path, service.client.get(f"{path}/result").json()


def test_given_uncertainties_reach_result_report_and_console(binary: Service) -> None:
    query = "&sigma=0,0.2&damping=0,%203&uncertainty_threshold=0.4&uncertainty_kind=other"
    path, found = done(binary, query, **npz(uncertainties=UNCERTAIN))
    scores = found["uncertainty_aware"]
    assert (scores["sigmas"], scores["dampings"], scores["threshold"]) == ([0, 0.2], [0, 3], 0.4)
    assert (scores["positive_class"], scores["members"]) == (1, None)
    assert scores["largest"] == pytest.approx(UNCERTAIN.max())
    assert 'id="uncertainty"' in binary.client.get(f"{path}/report").text
    console = Console(binary, scope="read")
    page = "/console" + path.removeprefix("/v1/admin")
    shown = console.get(page).text
    for text in ("Uncertainty-aware scores", "UA-F1", "d from 0 to 3, sigma = 0", f'href="{page}/report"'):
        assert text in shown
    report = console.get(f"{page}/report")
    assert "default-src 'none'" in report.headers["Content-Security-Policy"]
    assert 'id="uncertainty"' in report.text


def test_members_go_through_the_head(binary: Service) -> None:
    _, found = done(binary, "", **npz(**members()))
    scores = found["uncertainty_aware"]
    head = binary.store.heads.get("two@1", 1).head
    spread = np.std([head.apply(one).probabilities[:, 1] for one in MEMBERS], axis=0)
    assert (scores["members"], scores["kind"]) == (3, "standard_deviation")
    assert (scores["smallest"], scores["largest"]) == pytest.approx((spread.min(), spread.max()))
    unlike = np.std([softmax(one.astype(float))[:, 1] for one in MEMBERS], axis=0)
    assert scores["largest"] != pytest.approx(unlike.max()), "the head calibrates"


def test_json_and_npz_are_the_same_set(binary: Service) -> None:
    stored = [
        binary.client.post(PATH, **body).json()["payload"]["labelled_set"]
        for body in (
            npz(**{f"logits_{place}": one for place, one in enumerate(MEMBERS, start=1)}),
            document(members=[one.tolist() for one in MEMBERS]),
            npz(uncertainties=UNCERTAIN),
            document(uncertainties=UNCERTAIN.tolist()),
        )
    ]
    assert stored[0] == stored[1] != stored[2] == stored[3]


def test_without_uncertainties_nothing_changes(binary: Service) -> None:
    path, found = done(binary, "", **npz())
    assert found["uncertainty_aware"] is None
    assert "Uncertainty-aware" not in binary.client.get(f"{path}/report").text
    shown = Console(binary, scope="read").get("/console" + path.removeprefix("/v1/admin")).text
    assert "Uncertainty-aware" not in shown
    assert ">Report</a>" in shown


BODIES: list[tuple[dict[str, Any], str]] = [
    (npz(uncertainties=-UNCERTAIN), "uncertainties"),
    (npz(uncertainties=np.full(SIZE, np.nan)), "uncertainties"),
    (npz(uncertainties=np.full(SIZE, np.inf)), "uncertainties"),
    (npz(uncertainties=UNCERTAIN[1:]), "uncertainties"),
    (npz(uncertainties=np.zeros(SIZE)), "uncertainties"),
    (npz(uncertainties=UNCERTAIN, **members()), "uncertainties"),
    (npz(uncertainties=["a"] * SIZE), "uncertainties"),
    (npz(**members(1)), "members"),
    (npz(**members(101)), "members"),
    (npz(logits_1=LOGITS, logits_2=LOGITS), "members"),
    (npz(logits_1=LOGITS, logits_2=LOGITS + np.float32(1)), "members"),  # of equal probabilities
    (npz(logits_1=LOGITS, logits_2=LOGITS[1:]), "logits_2"),
    (npz(logits_1=LOGITS, logits_2=np.zeros((SIZE, 3))), "logits_2"),
    (npz(logits_2=LOGITS), "logits_2"),
    (document(uncertainties=[-1.0] * SIZE), "uncertainties"),
    (document(uncertainties=[0.5]), "uncertainties"),
    (document(uncertainties=["a"] * SIZE), "uncertainties.0"),
    (document(members=[LOGITS.tolist()]), "members"),
    (document(members=[LOGITS[:1].tolist()] * 101), "members"),
    (document(members=[LOGITS.tolist(), [[1.0], [1.0, 2.0]]]), "logits_2"),
]


def test_what_does_not_fit_is_refused_at_once(binary: Service) -> None:
    for body, field in BODIES:
        answer = binary.client.post(PATH, **body)
        assert refused(answer) == (422, field), answer.text
    assert binary.client.get("/v1/admin/jobs").json() == {"jobs": []}


def refused(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, error_of(answer)["field"]


def test_as_many_members_and_settings_as_allowed(binary: Service) -> None:
    query = f"sigma={SIGMAS}&damping=0,1,2,3,4,5"
    answer = binary.client.post(f"{PATH}?{query}", **npz(**members(100)))
    assert answer.status_code == 202, answer.text
    assert len(answer.json()["payload"]["uncertainty"]["sigmas"]) == 50


SIGMAS = ",".join(f"{place / 10}" for place in range(50))
QUERIES = [
    (f"sigma={SIGMAS},9", "sigma"),
    ("damping=0,1,2,3,4,5,6", "damping"),
    ("sigma=-1", "sigma"),
    ("sigma=0.2,0.1", "sigma"),
    ("sigma=nan", "sigma"),
    ("damping=x", "damping"),
    ("damping=", "damping"),
    (f"damping={'0' * 1001}", "damping"),
    ("uncertainty_threshold=1", "uncertainty_threshold"),
    ("uncertainty_kind=spread", "uncertainty_kind"),
    ("uncertainty_kind=entropy", "uncertainties"),  # whose largest value is ln 2
]


def test_settings_that_do_not_fit(binary: Service) -> None:
    for query, field in QUERIES:
        answer = binary.client.post(f"{PATH}?{query}", **npz(uncertainties=UNCERTAIN))
        assert refused(answer) == (422, field), answer.text
    assert refused(binary.client.post(f"{PATH}?sigma=0.1", **npz())) == (422, "uncertainties")


def test_a_task_of_more_classes_gets_the_reason(binary: Service) -> None:
    answer = binary.client.post(
        "/v1/admin/tasks/skin/recommendations", json={"fingerprint": {"number_of_classes": 3} | ANSWERS}
    )
    assert answer.status_code == 201
    three = np.hstack([LOGITS, LOGITS[:, :1]])
    body = npz(logits=three, uncertainties=UNCERTAIN)
    answer = binary.client.post("/v1/admin/models/linear/validations", **body)
    assert refused(answer) == (422, "uncertainties")
    assert "two classes only" in error_of(answer)["message"]
