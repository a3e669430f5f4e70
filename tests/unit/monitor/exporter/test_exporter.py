import json
import socket
import struct
import subprocess
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPResponse

import numpy as np
import pytest
from prometheus_client import generate_latest

from lifelong_core.configuration.policy_fields import MODES
from lifelong_core.deploy.adaptation.affected_decisions import AffectedCounts, DecisionChange
from lifelong_core.deploy.performance.labelled.agreement import Agreement
from lifelong_core.deploy.performance.performance_estimate import EstimatedMetric
from lifelong_core.entities.develop.knowledge import KnowledgeState
from lifelong_core.entities.performance import CLASS_MIXES, ClassMix, MetricAtClassMix
from lifelong_core.store.cycles.swaps import AffectedFigures
from lifelong_core.values.errors import (
    ConfigurationError,
    ForbiddenError,
    LifelongError,
    UnauthenticatedError,
    UnavailableError,
)
from lifelong_monitor.exporter import server
from lifelong_monitor.exporter.exporter import CYCLE_OUTCOMES, KNOWLEDGE_COUNTS, Exporter
from lifelong_monitor.exporter.status import ServingHead
from lifelong_monitor.jobs.running.metrics import JOB_OUTCOMES
from lifelong_monitor.realised.records import RealisedMetric, RealisedPerformance, RecommendedMetrics
from tests import tools
from tests.unit import performance_samples
from tests.unit.monitor.exporter import statuses
from tests.unit.monitor.exporter.statuses import NOON, SEEN

JUDGED = replace(
    statuses.JUDGED,
    last_success=NOON,
    mode="propose",
    pinned=True,
    proposed=True,
    last_swap=NOON,
    affected=AffectedFigures(
        since=NOON,
        until=NOON,
        counts=AffectedCounts(80, (DecisionChange(0, 1, 20, 7.5),)),
        groups=None,
        quarantined=0,
        other_models=0,
        gone=None,
        log_position=1,
        counted_at=NOON,
    ),
    realised=RealisedPerformance(
        40,
        0.75,
        1.25,
        RecommendedMetrics(
            (
                RealisedMetric("EC", None, 1.25, 1.0, 1.5, threshold=1.0, accepted=False),
                RealisedMetric("F_beta (beta=2.0)", 1, 0.9, 0.8, np.inf, threshold=0.5, accepted=True),
                RealisedMetric("TPR", 0, np.nan, np.nan, np.nan, threshold=0.9),
            )
        ),
    ),
)


def value(exporter: Exporter, name: str, **labels: str) -> float | None:
    role = {} if name.endswith("_total") else {"role": "promoted"}
    return exporter.registry.get_sample_value(name, {"model": "m@1", "environment": "clinic"} | role | labels)


def exported(exporter: Exporter) -> str:
    return generate_latest(exporter.registry).decode()


def test_a_judged_population_shows_every_figure(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    assert value(exporter, "lifelong_prevalence_estimate", **{"class": "malignant"}) == 0.1
    assert value(exporter, "lifelong_prevalence_low", **{"class": "malignant"}) == pytest.approx(0.05)
    assert value(exporter, "lifelong_prevalence_high", **{"class": "malignant"}) == pytest.approx(0.15)
    assert value(exporter, "lifelong_prevalence_assumed", **{"class": "malignant"}) == 0.5
    assert value(exporter, "lifelong_prevalence_shift_l1") == pytest.approx(0.8)
    assert value(exporter, "lifelong_prevalence_shift_l1_low") == pytest.approx(0.7)
    assert value(exporter, "lifelong_prevalence_shift_l1_high") == pytest.approx(0.9)
    assert value(exporter, "lifelong_cycle_last_reason", reason="prevalence_shifted") == 1
    assert value(exporter, "lifelong_population_task", task="skin") == 1
    assert value(exporter, "lifelong_last_swap_timestamp_seconds") == NOON.timestamp()
    changed = datetime(2026, 11, 20, 12, tzinfo=UTC).timestamp()
    assert value(exporter, "lifelong_prevalence_changed_timestamp_seconds") == changed
    assert value(exporter, "lifelong_window_samples") == 800
    assert value(exporter, "lifelong_cycle_last_success_timestamp_seconds") == NOON.timestamp()
    assert value(exporter, "lifelong_population_first_seen_timestamp_seconds") == NOON.timestamp()
    assert value(exporter, "lifelong_head_version") == 3
    assert value(exporter, "lifelong_head_activated_timestamp_seconds") == NOON.timestamp()
    assert value(exporter, "lifelong_realised_accuracy") == 0.75
    assert value(exporter, "lifelong_realised_expected_cost") == 1.25
    assert value(exporter, "lifelong_labelled_samples") == 40
    assert value(exporter, "lifelong_shift_log_e_value") == pytest.approx(7.5)
    assert value(exporter, "lifelong_shift_log_e_value_alarm") == pytest.approx(12)
    assert value(exporter, "lifelong_shift_evidence_samples") == 4000
    assert value(exporter, "lifelong_assumption_p_value") == 0.002
    assert value(exporter, "lifelong_assumption_level") == 0.01
    assert value(exporter, "lifelong_expected_gain") == 0.05
    assert value(exporter, "lifelong_expected_gain_low") == -0.01
    assert value(exporter, "lifelong_expected_gain_high") == 0.12
    assert value(exporter, "lifelong_expected_probability_gain") == 0.04
    assert value(exporter, "lifelong_expected_probability_gain_low") == 0.02
    assert value(exporter, "lifelong_expected_probability_gain_high") == 0.06
    assert value(exporter, "lifelong_worst_case_cost_increase") == 0.25
    assert value(exporter, "lifelong_affected_decisions") == 20
    assert value(exporter, "lifelong_affected_decisions_share") == 0.25
    assert value(exporter, "lifelong_affected_decisions_expected_cost") == 7.5
    assert value(exporter, "lifelong_head_pinned") == 1
    assert value(exporter, "lifelong_proposal_open") == 1
    modes = {name: value(exporter, "lifelong_policy_mode", mode=name) for name in MODES}
    assert modes == {"auto": 0, "propose": 1, "shadow": 0}
    assert exporter.registry.get_sample_value("lifelong_cycle_interval_seconds") == 3600


def test_the_counts_of_the_knowledge_base_are_shown(exporter: Exporter) -> None:
    exporter.show_knowledge(KnowledgeState(revision=1, entries=3, fingerprints=5, transfers=2, origins={}))
    counts = {
        name: exporter.registry.get_sample_value(f"lifelong_knowledge_{name}") for name in KNOWLEDGE_COUNTS
    }
    assert counts == {"entries": 3, "fingerprints": 5, "transfers": 2}


def test_the_comparison_of_labels_with_the_estimate_is_shown(exporter: Exporter) -> None:
    comparison = performance_samples.comparison()
    assert JUDGED.realised is not None
    realised = replace(
        JUDGED.realised, accuracy_interval=(0.7, 0.8), expected_cost_interval=(float("nan"), float("nan"))
    )
    exporter.show(replace(JUDGED, realised=realised, performance=comparison))
    assert value(exporter, "lifelong_realised_accuracy_low") == 0.7
    assert value(exporter, "lifelong_realised_accuracy_high") == 0.8
    assert value(exporter, "lifelong_realised_expected_cost_low") is None
    assert value(exporter, "lifelong_realised_expected_cost_high") is None
    names = ("agreement", "agreement_p_value")
    shown = [
        value(exporter, f"lifelong_performance_{name}", metric=metric)
        for name in names
        for metric in ("AC", "EC")
    ]
    assert shown == [0, 1, 0.003, 0.5]
    assert value(exporter, "lifelong_performance_labelled_samples") == 60
    assert value(exporter, "lifelong_calibration_drift_p_value") == 0.0004
    assert value(exporter, "lifelong_calibration_drift_level") == 0.01
    assert value(exporter, "lifelong_label_selection_p_value") == 0.4
    assert value(exporter, "lifelong_label_selection_level") == 0.01


def test_too_few_labels_show_no_agreement(exporter: Exporter) -> None:
    comparison = performance_samples.comparison()
    few = Agreement("too_few_labels", None, None, None, 0.05, "too few")
    head = replace(comparison.heads[-1], agreement={"AC": few}, realised=None)
    exporter.show(replace(JUDGED, performance=replace(comparison, heads=(head,), calibration_drift=None)))
    assert value(exporter, "lifelong_performance_labelled_samples") == 0
    for name in ("performance_agreement{", "performance_agreement_p_value{", "calibration_drift_p_value{"):
        assert f"lifelong_{name}" not in exported(exporter)


def test_recommended_metrics_are_shown_where_they_are_defined(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    of_all = {"metric": "EC", "class": "", "prevalence": "realised"}
    of_one = {"metric": "F_beta (beta=2.0)", "class": "malignant", "prevalence": "realised"}
    undefined = {"metric": "TPR", "class": "benign", "prevalence": "realised"}
    shown = {
        name: [
            value(exporter, f"lifelong_realised_metric{name}", **labels)
            for labels in (of_all, of_one, undefined)
        ]
        for name in ("", "_low", "_high", "_accepted")
    }
    assert shown == {
        "": [1.25, 0.9, None],
        "_low": [1.0, 0.8, None],
        "_high": [1.5, np.inf, None],
        "_accepted": [0, 1, None],
    }


def test_the_expected_cost_is_shown_at_all_class_mixes_of_the_same_labels(exporter: Exporter) -> None:
    def figure(mix: ClassMix, cost: float, *, accepted: bool | None) -> MetricAtClassMix:
        shares, metric = {"benign": 0.9, "malignant": 0.1}, EstimatedMetric(cost, cost - 0.05, cost + 0.05)
        return MetricAtClassMix("EC", mix, shares, 400, metric, 0.2, accepted)

    mixes = (
        figure("stated", 0.09, accepted=True),
        figure("estimated", 1.5, accepted=None),
        figure("realised", 1.76, accepted=False),
    )
    exporter.show(replace(JUDGED, performance=replace(performance_samples.comparison(), class_mixes=mixes)))
    shown = {
        mix: [
            value(exporter, f"lifelong_realised_metric{name}", metric="EC", prevalence=mix, **{"class": ""})
            for name in ("", "_low", "_high", "_accepted")
        ]
        for mix in CLASS_MIXES
    }
    assert shown == {
        "stated": [0.09, pytest.approx(0.04), pytest.approx(0.14), 1],
        "estimated": [1.5, pytest.approx(1.45), pytest.approx(1.55), None],
        "realised": [1.76, pytest.approx(1.71), pytest.approx(1.81), 0],
    }


def estimated(exporter: Exporter, suffix: str = "", **labels: str) -> float | None:
    labels = {"class": labels.pop("of", "")} | labels if "metric" in labels else labels
    return value(exporter, f"lifelong_estimated_performance{suffix}", **labels)


def test_estimates_without_labels_are_shown_for_both_heads(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    heads = {"current": [0.8, 0.7, 0.9], "candidate": [0.9, 0.85, 0.95]}
    for head, figures in heads.items():
        shown = [estimated(exporter, suffix, metric="AC", head=head) for suffix in ("", "_low", "_high")]
        assert shown == figures
    assert estimated(exporter, metric="TPR", of="malignant", head="current") == 0.6
    assert estimated(exporter, metric="PPV", of="benign", head="current") is None
    assert estimated(exporter, "_method", method="matched", head="candidate") == 1
    assert estimated(exporter, "_validated_error", head="current") == 0.0125
    assert estimated(exporter, "_validated_error", head="candidate") is None
    counts = [
        estimated(exporter, "_warnings", code=code, head="current")
        for code in ("assumption_rejected", "calibration_limited", "few_samples")
    ]
    assert counts == [1, 2, 0]


def test_the_acceptance_of_the_current_head_is_shown_with_its_thresholds(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    shown = {
        metric: tuple(
            estimated(exporter, suffix, metric=metric, of=of) for suffix in ("_accepted", "_threshold")
        )
        for metric, of in (("AC", ""), ("TPR", "malignant"), ("EC", ""), ("PPV", "benign"))
    }
    assert shown == {"AC": (0.5, 0.85), "TPR": (0, 0.8), "EC": (1, 2.0), "PPV": (None, 0.9)}


def test_after_a_swap_the_estimate_of_the_candidate_is_that_of_the_current_head(exporter: Exporter) -> None:
    exporter.show(replace(JUDGED, head=ServingHead(4, NOON, np.array([0.9, 0.1]), digest="new")))
    assert estimated(exporter, metric="AC", head="current") == 0.9
    assert estimated(exporter, metric="AC", head="candidate") is None
    assert estimated(exporter, "_accepted", metric="TPR", of="malignant") is None


def test_an_estimate_of_a_head_that_serves_no_more_is_not_shown(exporter: Exporter) -> None:
    exporter.show(replace(JUDGED, head=ServingHead(5, NOON, np.array([0.5, 0.5]), digest="by a person")))
    assert "lifelong_estimated_performance{" not in exported(exporter)
    assert "lifelong_estimated_performance_accepted{" not in exported(exporter)


def test_jobs_are_counted_by_kind_and_how_they_ended(exporter: Exporter) -> None:
    def count(kind: str, outcome: str) -> float | None:
        labels = {"kind": kind, "outcome": outcome}
        return exporter.registry.get_sample_value("lifelong_jobs_total", labels)

    assert {count("validate", outcome) for outcome in JOB_OUTCOMES} == {0}
    assert "lifelong_job_last_duration_seconds{" not in exported(exporter)
    with exporter.jobs.running("validate"):
        assert exporter.registry.get_sample_value("lifelong_jobs_running", {"kind": "validate"}) == 1
    assert "lifelong_job_last_duration_seconds{" not in exported(exporter)  # it was not done
    with exporter.jobs.running("of a newer version") as ending:
        ending.outcome = "failed"
    assert (count("validate", "again"), count("other", "failed")) == (1, 1)
    assert 'lifelong_job_last_duration_seconds{kind="other"}' in exported(exporter)
    assert "newer" not in exported(exporter)


def test_a_site_has_few_series_of_each_metric(exporter: Exporter) -> None:
    """Ten classes at one site stay far below a hundred series of one metric."""
    classes = tuple(f"class {index}" for index in range(10))
    report = replace(statuses.EMPTY, prevalence=statuses.prevalence(np.full(10, 0.1)))
    report = replace(report, assumed_prevalence=np.full(10, 0.1))
    exporter.show(replace(JUDGED, class_names=classes, head=None, report=report))
    series = Counter(line.split("{")[0] for line in exported(exporter).splitlines() if 'model="' in line)
    assert max(series.values()) == 10


def test_the_last_outcome_is_one_of_three(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    outcomes = {
        name: value(exporter, "lifelong_cycle_last_outcome", outcome=name)
        for name in ("keep", "swap", "refuse")
    }
    assert outcomes == {"keep": 0, "swap": 0, "refuse": 1}


def test_evidence_against_a_head_that_serves_no_more_is_not_shown(exporter: Exporter) -> None:
    exporter.show(replace(JUDGED, cycle=replace(statuses.CYCLE, head_version=2)))
    assert value(exporter, "lifelong_assumption_p_value") == 0.002
    for name in ("log_e_value", "log_e_value_alarm", "evidence_samples"):
        assert value(exporter, f"lifelong_shift_{name}") is None


def test_a_cycle_whose_report_cannot_be_read_shows_its_outcome_and_the_size_of_its_window(
    exporter: Exporter,
) -> None:
    exporter.show(replace(SEEN, head=JUDGED.head, cycle=statuses.CYCLE))
    names = {"window_samples": 800, "quarantined_predictions": 0, "assumption_p_value": None}
    assert {name: value(exporter, f"lifelong_{name}") for name in names} == names
    assert value(exporter, "lifelong_cycle_last_outcome", outcome="refuse") == 1


def test_what_is_not_known_has_no_series(exporter: Exporter) -> None:
    exporter.show(SEEN)
    shown = {line.split("{")[0] for line in exported(exporter).splitlines() if 'environment="clinic"' in line}
    assert shown == {
        "lifelong_cycles_total",
        "lifelong_population_first_seen_timestamp_seconds",
        "lifelong_population_task",
        "lifelong_policy_mode",
        "lifelong_head_pinned",
        "lifelong_proposal_open",
    }


def test_zero_is_a_value_and_not_missing(exporter: Exporter) -> None:
    exporter.show(
        replace(
            JUDGED,
            pinned=False,
            proposed=False,
            cycle=replace(statuses.CYCLE, window_samples=0),
            report=replace(
                statuses.REPORT,
                prevalence=statuses.prevalence([0.5, 0.5]),
                evidence=statuses.evidence(0.0, 0),
                assumption_test=statuses.assumption_test(0.0),
                expected_gain=statuses.gain(0.0, 0.0, 0.0),
                expected_probability_gain=statuses.probability_gain(0.0, 0.0, 0.0),
                worst_case_cost_increase=0.0,
            ),
            affected=replace(JUDGED.affected, counts=AffectedCounts()),  # type: ignore[type-var]
            realised=RealisedPerformance(1, 0.0, 0.0),
        )
    )
    for name in (
        "window_samples",
        "prevalence_shift_l1",
        "realised_accuracy",
        "realised_expected_cost",
        "shift_log_e_value",
        "shift_evidence_samples",
        "assumption_p_value",
        "expected_gain",
        "expected_gain_low",
        "expected_probability_gain",
        "expected_probability_gain_low",
        "expected_probability_gain_high",
        "worst_case_cost_increase",
        "affected_decisions",
        "affected_decisions_share",
        "affected_decisions_expected_cost",
        "head_pinned",
        "proposal_open",
    ):
        assert value(exporter, f"lifelong_{name}") == 0


def test_counters_exist_before_their_first_event(exporter: Exporter) -> None:
    exporter.show(SEEN)
    assert {value(exporter, "lifelong_cycles_total", outcome=name) for name in CYCLE_OUTCOMES} == {0}
    exporter.count_cycle("m@1", "clinic", "swap")
    assert value(exporter, "lifelong_cycles_total", outcome="swap") == 1


def test_a_population_that_is_gone_takes_its_gauges_with_it(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    exporter.show(replace(JUDGED, environment="other"))
    exporter.forget_all_but([("m@1", "other")])
    assert value(exporter, "lifelong_head_version") is None
    assert value(exporter, "lifelong_head_version", environment="other") == 3


def test_names_of_people_cannot_break_the_format(exporter: Exporter) -> None:
    strange = 'a "quoted"\nname\\'
    exporter.show(replace(JUDGED, class_names=("benign", strange)))
    assert value(exporter, "lifelong_prevalence_estimate", **{"class": strange}) == 0.1


def test_nothing_is_exported_as_an_age(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    assert not [line for line in exported(exporter).splitlines() if "_age" in line.split("{")[0]]


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_metrics_are_served_and_the_port_is_free_again_afterwards(exporter: Exporter, port: int) -> None:
    for _ in range(2):
        with exporter:
            exporter.listen("127.0.0.1", port)
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                assert b"lifelong_cycle_interval_seconds 3600.0" in answer.read()
                assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    ("error", "status", "header"),
    [
        (UnauthenticatedError("who are you?"), 401, "WWW-Authenticate"),
        (ForbiddenError("not you."), 403, "Content-Type"),
        (UnavailableError("nobody knows."), 503, "Retry-After"),
    ],
)
def test_a_scrape_may_be_refused(
    exporter: Exporter, port: int, error: LifelongError, status: int, header: str
) -> None:
    def check(authorization: str | None) -> None:
        if authorization != "Bearer ours":
            raise error

    def ask(path: str, method: str = "GET", **headers: str) -> urllib.error.HTTPError | HTTPResponse:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers, method=method)
        try:
            return urllib.request.urlopen(request, timeout=5)
        except urllib.error.HTTPError as refused:
            return refused

    with exporter:
        exporter.listen("127.0.0.1", port, check=check)
        for path, method in (
            ("/metrics", "GET"),
            ("/", "GET"),
            ("/favicon.ico", "GET"),
            ("/metrics", "OPTIONS"),
        ):
            with ask(path, method) as answer:
                assert answer.status == status
                assert header in answer.headers
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
                document = json.load(answer)
                assert document["error"]["message"] == error.message
        with ask("/metrics", Authorization="Bearer ours") as answer:
            assert b"lifelong_cycle_interval_seconds" in answer.read()


def test_what_is_no_request_gets_no_page_that_a_browser_could_take_for_one(
    exporter: Exporter, port: int, capfd: pytest.CaptureFixture[str]
) -> None:
    with exporter:
        exporter.listen("127.0.0.1", port)
        for request in (b"<script> x\r\n\r\n", b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000 + b"\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
                client.sendall(request)
                answer = b"".join(iter(lambda client=client: client.recv(4096), b""))
            assert b"<html" not in answer
        assert answer.startswith(b"HTTP/1.0 431 ")
        assert b"X-Content-Type-Options: nosniff" in answer
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # a reset, not an end
            client.sendall(b"GET /metrics?token=secret HTTP/1.1\r\n")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?token=secret", timeout=5) as ok:
            assert ok.status == 200
    assert capfd.readouterr().err == ""


def test_a_silent_client_is_cut_off(
    exporter: Exporter, port: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(server._Handler, "timeout", 0.1)
    with exporter:
        exporter.listen("127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.sendall(b"GET /met")
            assert client.recv(10) == b""
    assert capfd.readouterr().err == ""


def test_a_taken_port_is_explained(exporter: Exporter) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigurationError, match="cannot listen on") as raised:
            exporter.listen("127.0.0.1", taken.getsockname()[1])
    assert raised.value.field == "LIFELONG_MONITOR_PORT"
    assert raised.value.hint


def test_promtool_finds_nothing_wrong_with_the_names(exporter: Exporter) -> None:
    exporter.show(JUDGED)
    exporter.observe_duration(0.3)
    with exporter.jobs.running("validate") as ending:
        ending.outcome = "succeeded"
    checked = promtool_check_metrics(exported(exporter))
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout + checked.stderr


def test_promtool_would_find_a_bad_name() -> None:
    checked = promtool_check_metrics(
        "# HELP Bad_name_total Bad.\n# TYPE Bad_name_total gauge\nBad_name_total 1\n"
    )
    assert checked.returncode == 3


def promtool_check_metrics(metrics: str) -> subprocess.CompletedProcess[str]:
    promtool = tools.program(tools.PROMTOOL)
    return subprocess.run(
        [promtool, "check", "metrics"], input=metrics, capture_output=True, text=True, check=False, timeout=30
    )
