"""`lifelong adapt` as a user types it: files in, an answer out, no database."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from lifelong.cli import cli
from lifelong_core.deploy import AdaptationReport, LabeledLogits, PostProcessingHead, fit_head
from lifelong_core.errors import LifelongError


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run one command line in an empty folder; errors of the product are raised as they are."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, exit_code: int = 0) -> str:
        result = CliRunner().invoke(cli, ("adapt", *arguments), catch_exceptions=False)
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
    text = run("calibration.npz", "shifted.npy", "--classes", "ok,ill", "--out", "new.json")
    assert text.startswith("swap")
    assert "ok" in text
    assert "ill" in text
    head = PostProcessingHead.from_json((tmp_path / "new.json").read_text())
    assert head.assumed_prevalence == pytest.approx([0.93, 0.07], abs=0.03)
    assert head.class_names == ("ok", "ill")


def test_a_window_like_before_keeps_and_writes_nothing(run, tmp_path):
    text = run("calibration.npz", "same.npy", "--out", "new.json")
    assert text.startswith("keep")
    assert "not written" in text
    assert not (tmp_path / "new.json").exists()


def test_the_head_that_serves_decides_what_counts_as_shifted(run, tmp_path):
    run("calibration.npz", "shifted.npy", "--out", "new.json")
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
    assert report.prevalence is not None
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


def test_groups_of_a_window_are_counted(run, tmp_path):
    window = draw([930, 70], 2)
    np.savez(tmp_path / "patients.npz", logits=window.logits, groups=np.arange(1000) % 4)
    report = AdaptationReport.from_json(run("calibration.npz", "patients.npz", "--json"))
    assert [reason.code for reason in report.reasons] == ["window_too_small"]


def test_a_plan_says_which_window_is_enough(run):
    found = json.loads(run("--plan", "calibration.npz", "--prevalence", "0.9,0.1", "--json"))
    assert found["plan"]["prevalence"] == [0.9, 0.1]
    widths = [found["half_widths"][str(size)][0] for size in (100, 1000, 100_000)]
    assert widths == sorted(widths, reverse=True)
    assert max(found["floor"]) < found["half_width"] == 0.05
    text = run("--plan", "calibration.npz", "--prevalence", "0.9,0.1")
    assert f"a window of {found['size_needed']:,} samples is enough" in text


def test_a_plan_says_which_calibration_cases_are_missing(run):
    text = run("--plan", "calibration.npz", "--classes", "ok,ill", "--half-width", "0.01")
    assert "No window is large enough for ±0.01" in text
    assert " of ok" in text
    assert " of ill" in text


def test_a_plan_warns_of_a_tiny_calibration_set(run, tmp_path):
    (tmp_path / "tiny.npz").write_bytes(draw([40, 12], 0).to_bytes())
    assert "class 1 has 12 calibration samples" in run("--plan", "tiny.npz")
    assert "Caution" not in run("--plan", "calibration.npz")


def test_a_plan_without_any_data_is_a_rule_of_thumb(run):
    text = run("--plan", "--classes", "2", "--accuracy", "0.9", "--cases", "500", "--half-width", "0.03")
    assert "rule of thumb" in text
    assert "4,181 samples" in text


def test_many_classes_fit_into_a_terminal(run):
    text = run("--plan", "--classes", "100", "--accuracy", "0.7")
    assert "widest class" in text
    assert max(len(line) for line in text.splitlines()) < 120


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("calibration.npz",), "WINDOW"),
        (("--plan",), "--accuracy"),
        (("--plan", "calibration.npz", "same.npy"), "no window"),
        (("--plan", "calibration.npz", "--accuracy", "0.9"), "--accuracy"),
        (("--plan", "calibration.npz", "--costs", "[[0,1],[1,0]]"), "--costs"),
        (("calibration.npz", "same.npy", "--half-width", "0.1"), "--half-width"),
        (("calibration.npz", "nowhere.npy"), "nowhere.npy"),
    ],
)
def test_arguments_that_do_not_belong_together_are_refused(run, arguments, part):
    assert part in run(*arguments, exit_code=2)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
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
        (("--plan", "calibration.npz", "--prevalence", "a,b"), "--prevalence"),
        (("--plan", "calibration.npz", "--prevalence", "0.5,0.6"), "prevalence"),
        (("--plan", "calibration.npz", "--half-width", "0"), "half_width"),
        (("--plan", "--classes", "2", "--accuracy", "0.4"), "accuracy"),
    ],
)
def test_a_mistake_names_the_field(run, tmp_path, arguments, field):
    (tmp_path / "text.txt").write_text("no array")
    (tmp_path / "head.json").write_text(fit_head(draw([40, 40], 0), [[0, 1], [1, 0]]).to_json())
    with pytest.raises(LifelongError) as caught:
        run(*arguments)
    assert caught.value.field == field
