"""`lifelong adapt` as a user types it: files in, an answer out, no database."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.deploy import AdaptationReport, Argmax, LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.values.errors import LifelongError


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run one command line in an empty folder; errors of the product are raised as they are."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, exit_code: int = 0) -> str:
        command = arguments if arguments[0] == "plan" else ("adapt", *arguments)
        result = CliRunner().invoke(cli, command, catch_exceptions=False)
        assert result.exit_code == exit_code, result.output
        return result.output

    return run


def draw(counts, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return LabeledLogits(
        2 * np.eye(len(counts))[labels] + rng.normal(size=(labels.size, len(counts))), labels
    )


@pytest.fixture(autouse=True)
def files(tmp_path):
    """A calibration set with equal classes, a window of the same mix and one that has shifted."""
    (tmp_path / "calibration.npz").write_bytes(draw([400, 400], 0).to_bytes())
    np.save(tmp_path / "same.npy", draw([500, 500], 1).logits)
    np.save(tmp_path / "shifted.npy", draw([930, 70], 2).logits)


def test_a_shifted_window_swaps_and_writes_the_new_head(run, tmp_path):
    text = run("calibration.npz", "shifted.npy", "--classes", "ok,ill", "--output", "new.json")
    assert text.startswith("swap")
    assert "ok" in text
    assert "ill" in text
    head = PostProcessingHead.from_json((tmp_path / "new.json").read_text())
    assert head.assumed_prevalence == pytest.approx([0.93, 0.07], abs=0.03)
    assert head.class_names == ("ok", "ill")


@pytest.mark.parametrize("given", ["argmax", '{"kind": "argmax"}', "rule.json"])
def test_the_head_decides_by_the_rule_that_is_given(run, tmp_path, given):
    (tmp_path / "rule.json").write_text('{"kind": "argmax"}')
    run("calibration.npz", "shifted.npy", "--decision-rule", given, "--output", "new.json")
    assert PostProcessingHead.from_json((tmp_path / "new.json").read_text()).decision_rule == Argmax()


def test_a_rule_that_cannot_be_read_is_named(run, tmp_path) -> None:
    (tmp_path / "head.json").write_text("{}")
    for options, field in (
        (("--decision-rule", "nowhere.json"), "--decision-rule"),
        (("--decision-rule", "{"), "--decision-rule"),
        (
            ("--decision-rule", '{"kind": "target_value", "metric": "LR+", "value": 0.9}'),
            "decision_rule.metric",
        ),
        (("--decision-rule", "argmax", "--head", "head.json"), "--decision-rule"),
    ):
        with pytest.raises(LifelongError) as refused:
            run("calibration.npz", "same.npy", *options)
        assert refused.value.field == field


def test_a_window_like_before_keeps_and_writes_nothing(run, tmp_path):
    text = run("calibration.npz", "same.npy", "--output", "new.json")
    assert text.startswith("keep")
    assert "not written" in text
    assert not (tmp_path / "new.json").exists()


def test_the_head_that_serves_decides_what_counts_as_shifted(run, tmp_path):
    run("calibration.npz", "shifted.npy", "--output", "new.json")
    assert run("calibration.npz", "shifted.npy", "--head", "new.json").startswith("keep")
    assert run("calibration.npz", "same.npy", "--head", "new.json").startswith("swap")


def test_a_window_that_is_no_mix_of_the_classes_is_refused_and_says_why(run, tmp_path):
    logits = draw([930, 70], 2).logits.copy()
    logits[:, 1] += 2
    np.save(tmp_path / "moved.npy", logits)
    text = run("calibration.npz", "moved.npy", "--classes", "ok,ill")
    assert text.startswith("refuse")
    assert "more has changed" in text
    assert "nothing speaks against it" in run("calibration.npz", "shifted.npy")
    gone_on = run("calibration.npz", "moved.npy", "--policy", '{"assumption_violated": "report"}')
    assert not gone_on.startswith("refuse")


def test_json_is_the_report(run):
    report = AdaptationReport.from_json(run("calibration.npz", "shifted.npy", "--method", "PACC", "--json"))
    assert report.outcome == "swap"
    assert report.prevalence.method == "PACC"


def test_costs_and_policy_reach_the_cycle(run):
    report = AdaptationReport.from_json(
        run(
            *("calibration.npz", "shifted.npy", "--json"),
            *("--costs", "[[0, 1], [5, 0]]", "--policy", '{"minimum_samples": 2000}'),
        )
    )
    assert report.policy.minimum_samples == 2000
    assert [reason.code for reason in report.reasons] == ["window_too_small"]
    costs = fit_head(draw([400, 400], 0), [[0, 1], [5, 0]])
    assert report.head_digest == costs.digest


@pytest.mark.parametrize(
    ("setting", "options", "rates"),
    [
        ("0", (), ()),
        ("0.1", (), (0.1,)),
        ("0.1", ("--label-error-rate", "0.2"), (0.2,)),
        ("0.1", ("--policy", '{"label_error_rates": [0.0, 0.3]}'), (0.0, 0.3)),
        ("0.1", ("--policy", '{"level": 0.02}'), (0.1,)),
    ],
)
def test_assumed_label_errors_reach_the_cycle(run, monkeypatch, setting, options, rates):
    monkeypatch.setenv("LIFELONG_LABEL_ERROR_RATE", setting)
    report = AdaptationReport.from_json(run("calibration.npz", "same.npy", "--json", *options))
    assert report.policy.label_error_rates == rates


def test_groups_of_a_window_are_counted(run, tmp_path):
    window = draw([930, 70], 2)
    np.savez(tmp_path / "patients.npz", logits=window.logits, groups=np.arange(1000) % 4)
    report = AdaptationReport.from_json(run("calibration.npz", "patients.npz", "--json"))
    assert [reason.code for reason in report.reasons] == ["window_too_small"]


def test_a_plan_says_which_window_is_enough(run):
    found = json.loads(run("plan", "calibration.npz", "--prevalence", "0.9,0.1", "--json"))
    assert found["plan"]["prevalence"] == [0.9, 0.1]
    widths = [found["half_widths"][str(size)][0] for size in (100, 1000, 100_000)]
    assert widths == sorted(widths, reverse=True)
    assert max(found["floor"]) < found["half_width"] == 0.05
    text = run("plan", "calibration.npz", "--prevalence", "0.9,0.1")
    assert f"a window of {found['size_needed']:,} samples is enough" in text


def test_a_plan_says_which_calibration_cases_are_missing(run):
    text = run("plan", "calibration.npz", "--classes", "ok,ill", "--half-width", "0.01")
    assert "No window is large enough for ±0.01" in text
    assert " of ok" in text
    assert " of ill" in text


@pytest.mark.parametrize(("distance", "half_width"), [(12, "0.005"), (12, "0.03"), (3, "0.03"), (3, "0.005")])
def test_a_plan_on_ideal_data_does_not_blame_the_method(run, tmp_path, distance, half_width):
    """Logits that are exact log likelihoods, of classes that overlap or hardly do: no method fits better."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat([0, 1, 2], 300))
    logits = distance * (distance * np.eye(3)[labels] + rng.normal(size=(900, 3)))
    (tmp_path / "ideal.npz").write_bytes(LabeledLogits(logits, labels).to_bytes())
    text = run("plan", "ideal.npz", "--half-width", half_width)
    assert "samples is enough" in text
    assert "method" not in text


def test_a_plan_warns_of_a_tiny_calibration_set(run, tmp_path):
    (tmp_path / "tiny.npz").write_bytes(draw([40, 12], 0).to_bytes())
    assert "Fewer than 30 calibration samples are of class 1:" in run("plan", "tiny.npz")
    assert "Caution" not in run("plan", "calibration.npz")


def test_a_plan_on_separable_data_does_not_claim_certainty(run, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 150)
    logits = 40 * np.eye(2)[labels] + rng.normal(size=(300, 2))
    (tmp_path / "separable.npz").write_bytes(LabeledLogits(logits, labels).to_bytes())
    text = run("plan", "separable.npz", "--classes", "benign,malignant")
    assert ["endless", "±0.000", "±0.000"] in [line.split() for line in text.splitlines()]
    said = "No calibration case of classes benign and malignant was mistaken in 150, so up to 2 % may be"
    assert said in " ".join(text.split())


def labels_that_say_nothing(tmp_path):
    data = draw([400, 400], 0)
    labels = np.random.default_rng(3).permutation(data.labels)
    (tmp_path / "shuffled.npz").write_bytes(LabeledLogits(data.logits, labels).to_bytes())


def test_a_plan_calls_unknown_what_no_interval_of_a_share_can_say(run, tmp_path):
    labels_that_say_nothing(tmp_path)
    text = run("plan", "shuffled.npz", "--classes", "ok,ill")
    rows = [line.split() for line in text.splitlines()]
    assert ["endless", "unknown", "unknown"] in rows
    assert "±" not in "".join(word for row in rows[1:] for word in row[1:3])
    assert "cannot be estimated with this calibration set: ok, ill." in text
    found = json.loads(run("plan", "shuffled.npz", "--method", "auto", "--json").splitlines()[-1])
    assert found["floor"] == [None, None]
    assert found["half_widths"]["100"] == [None, None]


def test_a_plan_from_single_cases_says_how_many_there_are(run, tmp_path):
    (tmp_path / "three.npz").write_bytes(draw([2, 1], 0).to_bytes())
    assert "with 1 or more calibration cases of each class" in run("plan", "three.npz")
    (tmp_path / "two.npz").write_bytes(draw([1, 1], 0).to_bytes())
    text = run("plan", "two.npz")
    assert "too few independent cases" in text
    assert "±0.0" not in text
    strict = json.loads(run("plan", "two.npz", "--json").splitlines()[-1], parse_constant=pytest.fail)
    assert strict["cases_needed"] is None


def test_a_plan_names_no_absurd_number_of_cases(run) -> None:
    for half_width in ("0.0001", "0.00001", "1e-12"):
        text = run("plan", "calibration.npz", "--half-width", half_width)
        assert "No calibration set of realistic size reaches" in text
        assert "Add about" not in text
        found = json.loads(run("plan", "calibration.npz", "--half-width", half_width, "--json"))
        assert (found["cases_needed"], found["size_needed_then"]) == (None, None)


def test_class_names_in_brackets_are_no_markup(run):
    assert "[red]" in run("plan", "calibration.npz", "--classes", "[red],[/b]")
    assert "[/b]" in run("calibration.npz", "shifted.npy", "--classes", "[red],[/b]")


@pytest.mark.parametrize(
    ("place", "part"),
    [("nowhere/new.json", "no folder nowhere"), ("locked/new.json", "permission")],
)
def test_a_head_that_could_not_be_written_is_found_before_the_work(run, tmp_path, monkeypatch, place, part):
    (tmp_path / "locked").mkdir()
    # The tests may run as root, whom no mode of a folder stops.
    monkeypatch.setattr("os.access", lambda path, mode: "locked" not in str(path))  # noqa: ARG005
    monkeypatch.setattr("lifelong_core.deploy.adapt", lambda *_, **__: pytest.fail("the work has begun"))
    with pytest.raises(LifelongError, match=part) as caught:
        run("calibration.npz", "shifted.npy", "--output", place)
    assert caught.value.field == "--output"
    assert "\n" not in str(caught.value)
    assert "is a directory" in run("calibration.npz", "shifted.npy", "--output", ".", exit_code=2)


def test_a_head_that_fails_to_be_written_leaves_the_report(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(
        cli, ["adapt", "calibration.npz", "shifted.npy", "--output", "/proc/new.json"]
    )
    assert result.output.startswith("swap")
    assert isinstance(result.exception, LifelongError)
    assert result.exception.field == "--output"


@pytest.mark.parametrize(
    "logits",
    [np.full((300, 2), np.nan), np.zeros((300, 3)), np.zeros(300), np.full((300, 2), "a")],
    ids=["nan", "columns", "dimensions", "text"],
)
@pytest.mark.parametrize("how", [(), ("--json",)])
def test_a_window_that_is_none_is_an_error_of_its_file(run, tmp_path, logits, how):
    np.save(tmp_path / "odd.npy", logits)
    with pytest.raises(LifelongError, match=r"odd\.npy") as caught:
        run("calibration.npz", "odd.npy", *how)
    assert caught.value.field == "WINDOW"
    assert "\n" not in str(caught.value)


def test_a_window_cut_short_is_an_error_of_its_file(run, tmp_path):
    (tmp_path / "cut.npz").write_bytes((tmp_path / "calibration.npz").read_bytes()[:500])
    with pytest.raises(LifelongError, match=r"cut\.npz"):
        run("calibration.npz", "cut.npz")


def test_errors_in_the_calibration_set_name_its_file(run, tmp_path) -> None:
    np.savez(tmp_path / "bare.npz", logits=np.zeros((5, 2)))
    np.savez(tmp_path / "one.npz", logits=np.zeros((5, 2)), labels=np.zeros(5, int))
    for arguments in (("bare.npz", "same.npy"), ("plan", "bare.npz"), ("plan", "one.npz")):
        with pytest.raises(LifelongError, match=r"(bare|one)\.npz: "):
            run(*arguments)


def test_a_plan_without_any_data_is_a_rule_of_thumb(run):
    text = run("plan", "--classes", "2", "--accuracy", "0.9", "--cases", "500", "--half-width", "0.03")
    assert "rule of thumb" in text
    assert "4,181 samples" in text


def test_a_plan_for_a_model_that_never_errs_says_what_is_expected(run):
    with pytest.raises(LifelongError, match=r"above 1/2 \(guessing\) and below 1, got 1\.") as caught:
        run("plan", "--classes", "2", "--accuracy", "1.0")
    assert "0.99" in str(caught.value.hint)


def test_many_classes_fit_into_a_terminal(run):
    text = run("plan", "--classes", "100", "--accuracy", "0.7")
    assert "widest class" in text
    assert max(len(line) for line in text.splitlines()) < 120


def test_arguments_that_do_not_belong_together_are_refused(run) -> None:
    for arguments, part in (
        (("calibration.npz",), "WINDOW"),
        (("plan",), "--accuracy"),
        (("plan", "calibration.npz", "same.npy"), "same.npy"),
        (("plan", "calibration.npz", "--accuracy", "0.9"), "--accuracy"),
        (("plan", "calibration.npz", "--costs", "[[0,1],[1,0]]"), "--costs"),
        (("calibration.npz", "same.npy", "--half-width", "0.1"), "--half-width"),
        (("calibration.npz", "nowhere.npy"), "nowhere.npy"),
    ):
        assert part in run(*arguments, exit_code=2)


def test_a_mistake_names_the_field(run, tmp_path) -> None:
    (tmp_path / "text.txt").write_text("no array")
    (tmp_path / "head.json").write_text(fit_head(draw([40, 40], 0), [[0, 1], [1, 0]]).to_json())
    for arguments, field in (
        (("calibration.npz", "calibration.npz", "--policy", '{"levle": 1}'), "--policy"),
        (("calibration.npz", "same.npy", "--policy", "nowhere.json"), "--policy"),
        (("calibration.npz", "same.npy", "--policy", '{"level": 2}'), "level"),
        (("calibration.npz", "same.npy", "--classes", "a,b,c"), "--classes"),
        (("calibration.npz", "same.npy", "--costs", "nowhere"), "--costs"),
        (("calibration.npz", "same.npy", "--method", "FOO"), "quantifier"),
        (("calibration.npz", "text.txt"), "WINDOW"),
        (("text.txt", "same.npy"), "calibration_set"),
        (("calibration.npz", "same.npy", "--head", "head.json", "--costs", "[[0,1],[1,0]]"), "--costs"),
        (("calibration.npz", "same.npy", "--head", "text.txt"), "head"),
        (("calibration.npz", "same.npy", "--policy", '{"minimum_samples": true}'), "minimum_samples"),
        (("calibration.npz", "same.npy", "--classes", "a,a"), "--classes"),
        (("plan", "calibration.npz", "--classes", "a,a"), "--classes"),
        (("plan", "--classes", "a,", "--accuracy", "0.9"), "--classes"),
        (("plan", "calibration.npz", "--prevalence", "a,b"), "--prevalence"),
        (("plan", "calibration.npz", "--prevalence", "0.5,0.6"), "prevalence"),
        (("plan", "calibration.npz", "--half-width", "0"), "half_width"),
        (("plan", "--classes", "2", "--accuracy", "0.4"), "accuracy"),
    ):
        with pytest.raises(LifelongError) as caught:
            run(*arguments)
        assert caught.value.field == field


def test_the_order_of_the_rows_counts_only_where_it_is_given(run, tmp_path):
    """Sorted rows once looked like a change from one class to the other."""
    data = draw([560, 240], 7)
    by_class = np.argsort(data.labels, kind="stable")
    np.savez(tmp_path / "dated.npz", logits=data.logits[by_class], at=np.arange(800.0)[by_class])
    np.save(tmp_path / "sorted.npy", data.logits[by_class])
    np.save(tmp_path / "drawn.npy", data.logits)
    drawn, by_label = (
        json.loads(run("calibration.npz", f"{name}.npy", "--json")) for name in ("drawn", "sorted")
    )
    shares = [report["prevalence"]["prevalence"] for report in (drawn, by_label)]
    assert shares[0] == pytest.approx(shares[1], abs=1e-9)
    assert drawn["outcome"] == by_label["outcome"] == "swap"
    dated = json.loads(run("calibration.npz", "dated.npz", "--times", "at", "--json"))
    assert dated["prevalence"]["prevalence"] == pytest.approx(shares[0], abs=1e-9)
    moments = [datetime.fromtimestamp(at, UTC).isoformat() for at in np.arange(800)[by_class].tolist()]
    rows = [f"{at},{z[0]},{z[1]}" for at, z in zip(moments, data.logits[by_class], strict=True)]
    (tmp_path / "dated.csv").write_text("\n".join(["at,logit_0,logit_1", *rows]))
    table = json.loads(run("calibration.npz", "dated.csv", "--times", "at", "--json"))
    assert (table["prevalence"], table["change_points"]) == (dated["prevalence"], dated["change_points"])
    with pytest.raises(LifelongError, match="sorted by class") as caught:
        run("calibration.npz", "sorted.npy", "--order", "time")
    assert caught.value.field == "--order"


def test_rows_in_another_order_give_the_same_report_to_the_last_bit(run, tmp_path):
    logits = draw([60, 90], 7).logits.round(1)
    groups = np.array([f"patient-{k // 4}" if k % 7 else "" for k in range(150)])
    reports = set()
    for order in (np.arange(150), np.arange(150)[::-1], np.random.default_rng(0).permutation(150)):
        np.savez(tmp_path / "rows.npz", logits=logits[order], groups=groups[order])
        reports.add(run("calibration.npz", "rows.npz", "--json"))
    assert len(reports) == 1


@pytest.mark.parametrize("parts", [[(500, 50), (200, 300)], [(300, 30), (100, 300), (250, 80)]])
def test_changes_of_a_series_are_found_and_not_taken_for_sorted_rows(run, tmp_path, parts):
    np.save(tmp_path / "series.npy", np.concatenate([draw(part, k).logits for k, part in enumerate(parts)]))
    report = json.loads(run("calibration.npz", "series.npy", "--order", "time", "--json"))
    assert len(report["change_points"]) == len(parts) - 1


def test_times_that_do_not_fit_are_named(run, tmp_path) -> None:
    np.save(tmp_path / "short.npy", np.arange(3.0))
    np.save(tmp_path / "times.npy", np.arange(1000.0))
    for options in (
        ("--times", "missing"),
        ("--times", "short.npy"),
        ("--times", "times.npy", "--order", "none"),
    ):
        with pytest.raises(LifelongError) as caught:
            run("calibration.npz", "same.npy", *options)
        assert caught.value.field in {"--times", "--order"}


def test_tables_give_the_same_answer_as_arrays_whatever_the_order_of_their_columns(run, tmp_path):
    calibration, window = draw([400, 400], 0), np.load(tmp_path / "shifted.npy")

    def text(names: list[str], rows: list[list[float]]) -> str:
        lines = [";".join(names), *(";".join(str(cell).replace(".", ",") for cell in row) for row in rows)]
        return "\r\n".join(lines)

    labels = [["ok", "ill"][label] for label in calibration.labels]
    rows = [[label, *row] for label, row in zip(labels, calibration.logits.tolist(), strict=True)]
    (tmp_path / "calibration.csv").write_text(text(["label", "logit_ok", "logit_ill"], rows))
    (tmp_path / "window.csv").write_text(text(["logit_ill", "logit_ok"], window[:, ::-1].tolist()))
    arrays = json.loads(run("calibration.npz", "shifted.npy", "--json"))
    tables = json.loads(run("calibration.csv", "window.csv", "--json"))
    assert tables["prevalence"] == arrays["prevalence"]
