"""`lifelong validate` on files, as a person and a build job call it."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong_core.design import (
    AcceptanceThreshold,
    ModelComparison,
    ProblemFingerprint,
    ValidationResult,
    recommend,
    start_interview,
    validate,
)
from lifelong_core.design.report.basis import groups_behind
from lifelong_core.design.report.sections import judged_of
from lifelong_core.design.report.words import agreement_in_words, calibrated_in_words, interval_in_words
from lifelong_core.values.errors import InvalidInputError
from tests.unit.cli.interview.test_recommend import without_a_reader
from tests.unit.design.interviews import ALL_ALIKE
from tests.unit.design.recommendation.test_progress import SCREENING
from tests.unit.design.validations import metric, recommending

QUICK = ("--replicates", "50")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch) -> None:
    """A recommendation, an interview, and the outputs of a good and of a poor model on the same samples."""
    monkeypatch.chdir(tmp_path)
    Path("found.json").write_text(recommend(ProblemFingerprint(**SCREENING)).to_json())
    interview = start_interview(class_names=["benign", "malignant"], answers=SCREENING)
    Path("interview.json").write_text(interview.to_json())
    rng = np.random.default_rng(0)
    labels = np.arange(200) % 2
    shared = {"labels": labels, "groups": np.arange(200) // 4, "metadata_scanner": np.repeat(["A", "B"], 100)}
    for name, signal in (("good", 3.0), ("poor", 0.5), ("tuning", 3.0)):
        score = signal * (2 * labels - 1) + rng.normal(size=200)
        logits = np.stack([np.zeros(200), score], axis=1)
        np.savez(f"{name}.npz", logits=logits, **shared)
    np.savez("other.npz", labels=1 - labels, logits=logits)


def run(*options: str, status: int = 0) -> Result:
    result = CliRunner().invoke(cli, ["validate", *QUICK, *options], catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def test_the_recommended_metrics_are_printed_with_intervals():
    said = run("good.npz", "--recommendation", "interview.json").stdout
    assert said.startswith("good  200 samples of 50 groups; decisions are judged on 100\n")
    for part in (
        "EC",
        "TNR@(TPR=0.95)",
        "AP",
        "malignant",
        "95 % interval",
        "↓ lower",
        "AP: Average precision",
    ):
        assert part in said
    assert "The cut-offs of the decision rule, TNR@(TPR=0.95) were chosen on a random half" in " ".join(
        said.split()
    )
    assert "class 1" in run("good.npz", "--recommendation", "found.json").stdout


def test_class_names_go_from_the_answers_to_the_report():
    answers = {**SCREENING, "class_names": ["benign", "malignant"]}
    names = answers.pop("class_names")
    document = {"class_names": names, "answers": answers}
    Path("answers.json").write_text(json.dumps(document))
    asked = CliRunner().invoke(
        cli, ["recommend", "--answers", "answers.json", "--output", "named.json"], catch_exceptions=False
    )
    assert asked.exit_code == 0, asked.output
    assert json.loads(Path("named.json").read_text())["class_names"] == names
    said = run(
        "good.npz", "--recommendation", "named.json", "--html", "report.html", "--output", "result.json"
    )
    assert "malignant" in said.stdout
    assert "class 1" not in said.stdout
    assert json.loads(Path("result.json").read_text())["class_names"] == names
    assert "malignant" in Path("report.html").read_text()


def test_class_names_may_come_with_the_data():
    with np.load("good.npz") as arrays:
        np.savez("named.npz", class_names=np.array(["healthy", "ill"]), **arrays)
        np.savez("numbered.npz", class_names=np.arange(2), **arrays)
    said = run("named.npz", "--recommendation", "found.json", "--threshold", "AP[ill]=0.5").stdout
    assert "AP of ill" in said
    with pytest.raises(InvalidInputError, match="healthy, ill here, but benign, malignant") as refused:
        run("named.npz", "--recommendation", "interview.json")
    assert refused.value.field == "class_names"
    with pytest.raises(InvalidInputError, match=r"numbered\.npz: expected texts of shape"):
        run("numbered.npz", "--recommendation", "found.json")


def test_subgroups_are_printed_with_intervals():
    with np.load("good.npz") as arrays:
        data = dict(arrays)
    data["metadata_scanner"][:4] = "C"
    np.savez("sites.npz", **data)
    printed = run("sites.npz", "--recommendation", "interview.json", "--json").stdout
    said = run("sites.npz", "--recommendation", "interview.json").stdout
    for group in ValidationResult.from_json(printed).subgroups:
        value = next(one for one in group.values if one.label == "EC")
        line = next(line for line in said.splitlines() if f"scanner: {group.key}" in line)
        assert f"{judged_of(group, value)} of {group.samples}" in line
        assert interval_in_words(value) in line
    assert "Caution: scanner C: only 1 independent cases" in said
    assert "cases of class malignant, fewer than 10" in " ".join(said.split())
    assert ": no interval: every class" in " ".join(said.split())


def test_it_is_what_the_library_computes():
    printed = run(
        "good.npz", "--recommendation", "found.json", "--json", "--level", "0.9", "--seed", "3"
    ).stdout
    with np.load("good.npz") as data:
        expected = validate(
            recommend(ProblemFingerprint(**SCREENING)),
            data["labels"],
            logits=data["logits"],
            groups=data["groups"],
            metadata={"scanner": data["metadata_scanner"]},
            replicates=50,
            level=0.9,
            rng=3,
            name="good",
        )
    assert ValidationResult.from_json(printed) == expected


def test_thresholds_decide_how_it_ends():
    options = ("--recommendation", "interview.json")
    passed = run("good.npz", *options, "--threshold", "AP[malignant]=50 %").stdout
    assert "reached AP of malignant: " in passed, passed
    missed = run("poor.npz", *options, "--threshold", "AP=0.9", "--threshold", "EC=5", status=3).stdout
    assert "missed AP" in missed
    assert "reached EC" in missed


def test_net_benefit_is_that_of_use():
    answers = {
        **SCREENING,
        "number_of_classes": 2,
        "decision_rule": "cost_benefit",
        "threshold_perspective": "risk_threshold",
        "risk_threshold": 0.1,
        "threshold_range": True,
        "costs": ((0.0, 1.0), (9.0, 0.0)),
        "prevalences_representative": False,
        "target_prevalences_known": True,
        "target_prevalences": (0.9, 0.1),
    }
    Path("benefit.json").write_text(
        recommending(metric("NB", parameters={"threshold": 0.1}), **answers).to_json()
    )
    given = ("good.npz", "--recommendation", "benefit.json", "--json")
    found, same, other = (
        ValidationResult.from_json(run(*given, *options).stdout)
        for options in ((), ("--score-prevalence", "0.5,0.5"), ("--score-prevalence", "0.9,0.1"))
    )
    assert found.value("NB@0.1").prevalence == (0.9, 0.1)
    assert found.estimate("NB@0.1") == same.estimate("NB@0.1") != other.estimate("NB@0.1")
    assert "takes numbers" in run(*given, "--score-prevalence", "a,b", status=2).stderr


def test_models_are_compared():
    models = ("poor=poor.npz", "good=good.npz")
    options = ("--recommendation", "found.json", "--output", "compared.json")
    # one that is good enough is enough
    said = run(*models, *options, "--html", "page.html", "--threshold", "AP=0.9").stdout
    assert "By AP, ↑ higher is better" in said
    assert "Rank then mean, by EC, TNR@(TPR=0.95), AP" in said
    compared = ModelComparison.from_json(Path("compared.json").read_text())
    assert [model.model for model in compared.rank_then_mean.models] == ["good", "poor"]
    assert "<html" in Path("page.html").read_text()
    run(*models, *options, "--threshold", "AP=1.01", status=3)


def test_cut_offs_are_chosen_on_other_samples():
    result = run("good.npz", "--recommendation", "found.json", "--cut-offs", "tuning.npz", "--json").stdout
    assert ValidationResult.from_json(result).value("TNR@(TPR=0.95)").cut_off.chosen_on == "other_data"
    models = ("a=good.npz", "b=poor.npz", "--recommendation", "found.json")
    tuning = ("--cut-offs", "a=tuning.npz", "--cut-offs", "b=poor.npz")
    compared = ModelComparison.from_json(run(*models, *tuning, "--json").stdout)
    cut_offs = [one.value("TNR@(TPR=0.95)").cut_off for one in compared.results.values()]
    assert [cut_off.chosen_on for cut_off in cut_offs] == ["other_data"] * 2
    assert cut_offs[0].threshold != cut_offs[1].threshold
    with pytest.raises(InvalidInputError, match="for all or for none"):
        run(*models, *tuning[:2])


def test_files_may_lie_in_folders_with_any_name():
    """As those of partitions by day do."""
    Path("day=1").mkdir()
    for name in ("good", "tuning"):
        Path(f"{name}.npz").rename(f"day=1/{name}.npz")
    options = ("--recommendation", "found.json", "--json")
    result = run("net=day=1/good.npz", "--cut-offs", "day=1/tuning.npz", *options).stdout
    found = ValidationResult.from_json(result)
    assert (found.name, found.value("TNR@(TPR=0.95)").cut_off.chosen_on) == ("net", "other_data")


def test_a_word_of_an_answer_makes_no_interview_of_a_recommendation():
    answers = ProblemFingerprint(**{**SCREENING, "grouping_variable": "history"})
    Path("found.json").write_text(recommend(answers).to_json())
    assert "TNR@(TPR=0.95)" in run("good.npz", "--recommendation", "found.json").stdout


def test_a_report_is_written_beside_json():
    result = run("good.npz", "--recommendation", "found.json", "--json", "--html", "page.html")
    json.loads(result.stdout)
    assert "The report is in page.html" in result.stderr
    assert "TNR@(TPR=0.95)" in Path("page.html").read_text()


def test_a_value_that_is_undefined_says_why():
    np.savez("ones.npz", labels=np.ones(20, int), probabilities=np.tile([0.3, 0.7], (20, 1)))
    said = run("ones.npz", "--recommendation", "interview.json", "--cut-offs", "tuning.npz").stdout
    assert "not defined" in said
    assert "Caution: TNR@(TPR=0.95) of malignant is not defined" in said


def test_many_classes_are_not_all_printed():
    Path("found.json").write_text(recommend(ProblemFingerprint(number_of_classes=30, **ALL_ALIKE)).to_json())
    labels = np.arange(90) % 30
    np.savez("many.npz", labels=labels, probabilities=0.5 * np.eye(30)[labels] + 0.5 / 30)
    said = run("many.npz", "--recommendation", "found.json").stdout
    assert "36 values are not shown" in said
    assert "class 11" in said
    assert said.count("class 12") == 1  # in a caution


def test_a_task_knows_what_its_models_are_judged_by(installed):
    installed("tasks", "add", "lesions", "--classes", "benign,malignant")
    with pytest.raises(InvalidInputError, match="has no recommendation") as caught:
        installed("validate", *QUICK, "good.npz", "--task", "lesions")
    assert "lifelong recommend --attach lesions" in caught.value.hint
    with open_store() as store:
        store.recommendations.attach(
            "lesions",
            recommend(ProblemFingerprint(**SCREENING)),
            thresholds=[AcceptanceThreshold(metric="AP", value=0.99)],
            actor="me",
        )
    said = installed("validate", *QUICK, "poor.npz", "--task", "lesions", status=3)
    assert "malignant" in said
    assert "missed AP" in said
    assert "reached AP" in installed(
        "validate", *QUICK, "poor.npz", "--task", "lesions", "--threshold", "AP=0.1"
    )


def test_options_that_do_not_go_together_are_refused() -> None:
    for options in (
        (),
        ("good.npz",),
        ("--recommendation", "found.json"),
        ("good.npz", "--recommendation", "found.json", "--task", "lesions"),
        ("good.npz", "--recommendation", "found.json", "good=poor.npz"),
        ("--recommendation", "found.json", "a=missing.npz"),
        ("good.npz", "--recommendation", "found.json", "--cut-offs", "a=tuning.npz"),
        (
            "good.npz",
            "--recommendation",
            "found.json",
            "--cut-offs",
            "tuning.npz",
            "--cut-offs",
            "good=tuning.npz",
        ),
    ):
        assert "Error" in run(*options, status=2).stderr


def test_what_does_not_fit_is_named() -> None:
    np.savez("nolabels.npz", logits=np.zeros((2, 2)))
    np.savez("flat.npz", labels=[0, 1], logits=[0.1, 0.2])
    np.savez("words.npz", labels=[0, 1], logits=[["high", "low"], ["low", "high"]])
    np.savez("both.npz", labels=[0, 1], logits=np.zeros((2, 2)), probabilities=np.full((2, 2), 0.5))
    for options, said in (
        (("found.json", "--recommendation", "found.json"), "expected an npz file"),
        (("good.npz", "--recommendation", "good.npz"), "this is not JSON"),
        (("nolabels.npz", "--recommendation", "found.json"), "lacks this array"),
        (("both.npz", "--recommendation", "found.json"), "logits and probabilities"),
        (("good.npz", "--recommendation", "found.json", "--cut-offs", "flat.npz"), "of shape (2,)"),
        (("good.npz", "--recommendation", "found.json", "--cut-offs", "words.npz"), "expected numbers"),
        (("good.npz", "--recommendation", "found.json", "--threshold", "BA=0.5"), "'BA' is not recommended"),
        (("good.npz", "--recommendation", "found.json", "--threshold", "AP[c]=0.5"), "no class 'c'"),
        (("good.npz", "--recommendation", "found.json", "--classes", "a,b,c"), "expected 2 different names"),
        (
            ("--recommendation", "found.json", "a=good.npz", "b=other.npz"),
            "the labels of b are others than those of a",
        ),
        (
            ("good.npz", "--recommendation", "found.json", "--html", "missing/../found.json/x"),
            "cannot be written",
        ),
    ):
        with pytest.raises(InvalidInputError) as caught:
            run(*options)
        assert said in str(caught.value)


def test_calibration_errors_are_printed_beside_those_of_calibrated_predictions(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    advised = recommending("ECE", "BA", number_of_classes=2, calibration_assessment=True)
    Path("calibration.json").write_text(advised.to_json())
    options = ("--recommendation", "calibration.json", "--html", "page.html", "--output", "result.json")
    said = run("good.npz", *options).stdout
    result = ValidationResult.from_json(Path("result.json").read_text())
    found = result.value("ECE")
    assert "Calibration slope and O:E ratio, both best at 1:" in said
    for one in result.calibration_agreement:
        for value in (one.slope, one.observed_expected):
            assert agreement_in_words(value) in said
            assert agreement_in_words(value) in Path("page.html").read_text()
    assert "if perfectly calibrated" in said
    assert calibrated_in_words(found) in said
    assert f"by chance {calibrated_in_words(found)}" in Path("page.html").read_text()
    models = ("poor=poor.npz", "good=good.npz")
    assert "excess" in run(*models, *options[:-2]).stdout
    assert "excess over perfectly calibrated" in Path("page.html").read_text()


@pytest.mark.parametrize("further", [(), ("--json",), ("poor=poor.npz", "good=good.npz")])
def test_files_are_written_even_where_nothing_reads_the_output(further):
    data = () if "poor=poor.npz" in further else ("good.npz",)
    options = ("--recommendation", "interview.json", "--output", "result.json", "--html", "report.html")
    without_a_reader("validate", *data, *QUICK, *options, *further)
    kind = ModelComparison if "poor=poor.npz" in further else ValidationResult
    assert "malignant" in str(kind.from_json(Path("result.json").read_text()))
    assert "</html>" in Path("report.html").read_text()


def test_metrics_of_groups_are_averaged_on_request():
    said = run("good.npz", "--recommendation", "interview.json", "--aggregate", "by-group").stdout
    head = "good  200 samples of 50 groups; decisions are judged on 100; each metric is a mean over groups"
    assert " ".join(said.split()).startswith(" ".join(head.split()))
    found = run("good.npz", "--recommendation", "interview.json", "--aggregate", "by-group", "--json").stdout
    assert '"aggregation":"by_group"' in found.replace(": ", ":")


def test_the_groups_behind_each_value_are_printed():
    Path("found.json").write_text(
        recommending("TPR", "ECE", "AC", number_of_classes=2, prevalences_representative=True).to_json()
    )
    with np.load("good.npz") as arrays:
        np.savez("sparse.npz", **{**arrays, "groups": np.random.default_rng(0).integers(60, size=200)})
    options = ("sparse.npz", "--recommendation", "found.json", "--aggregate", "by-group")
    said = run(*options).stdout
    result = ValidationResult.from_json(run(*options, "--json").stdout)
    lines = {line.split()[0]: line for line in said.splitlines() if line[:1].strip()}
    for label in ("TPR", "ECE", "AC"):
        assert f"  {groups_behind(result, result.value(label))}  " in lines[label]
    assert "pooled" in lines["ECE"]
    assert " of " in groups_behind(result, result.value("TPR"))
    said = " ".join(said.split())
    assert "metrics are means over groups, but for those that are pooled" in said
    assert "ECE: pooled over all samples: in single groups it says nothing." in said


def test_a_value_of_both_classes_is_printed_once_with_its_costs():
    costs = ((0.0, 1.0), (50.0, 0.0))
    answers = {
        "number_of_classes": 2,
        "prevalences_representative": False,
        "target_prevalences": (0.98, 0.02),
    }
    asked = recommending("AUROC", metric("EC", parameters={"costs": costs}), "TPR", **answers, costs=costs)
    Path("found.json").write_text(asked.to_json())
    said = run("poor.npz", "--recommendation", "found.json").stdout
    assert said.count("AUROC  ") == 1
    table = said[: said.index("Caution")]
    value = ValidationResult.from_json(run("poor.npz", "--recommendation", "found.json", "--json").stdout)
    assert table.count(interval_in_words(value.value("AUROC"))) == 2  # and the subgroup of all
    assert "values are not shown" not in said
    row = table[table.index("\nEC ") : table.index("\nTPR ")]
    for words in ("costs", "50:1,", "prevalence", "0.02"):
        assert words in row.split()
    said = " ".join(said.split())
    assert "At the class shares of use (costs 50:1, prevalence 0.02), a decision costs 0." in said
    assert "This is the EC above." in said


def test_a_comparison_starts_with_who_comes_first():
    models = ("poor=poor.npz", "good=good.npz")
    said = run(*models, "--recommendation", "found.json").stdout
    assert said.startswith("good comes first. By all metrics together, it stays first in ")
    places = [
        said.index(text)
        for text in (
            "Rank then mean, by",
            "Mean then rank, by",
            "By EC, ",
            "By AP, ",
            "poor  200",
            "good  200",
        )
    ]
    assert places == sorted(places)
    words = " ".join(said.split())
    assert "No comparison by calibration was asked for" in words
    assert "Read the order by rank then mean first." in words
    assert "the mean of these ranks, over the metrics, puts them in order" in words
    assert "mean of ranks place in resamples (interval)" in words


@pytest.mark.parametrize(
    ("metrics", "answers", "is_used"),
    [
        (("BA",), {"decision_rule": "argmax"}, False),
        (("BA",), {"decision_rule": "target_value", "target_metric": "TPR", "target_value": 0.9}, True),
        (("TNR",), {"decision_rule": "argmax"}, None),
    ],
)
def test_cut_offs_that_nothing_needs_are_named(metrics, answers, is_used):
    chosen = metrics
    if is_used is None:
        chosen = [metric(name, parameters={"target": ("TPR", 0.95)}) for name in metrics]
    asked = recommending(*chosen, number_of_classes=2, prevalences_representative=True, **answers)
    Path("found.json").write_text(asked.to_json())
    found = run("good.npz", "--recommendation", "found.json", "--cut-offs", "tuning.npz")
    assert ("--cut-offs is not used" in found.stderr) is (is_used is False)
    assert "--cut-offs" not in run("good.npz", "--recommendation", "found.json").stderr


def test_cut_offs_beside_given_decisions_are_named():
    rule = {"decision_rule": "target_value", "target_metric": "TPR", "target_value": 0.9}
    asked = recommending("BA", number_of_classes=2, prevalences_representative=True, **rule)
    Path("found.json").write_text(asked.to_json())
    np.savez("decided.npz", labels=np.arange(40) % 2, decisions=np.arange(40) % 2)
    found = run("decided.npz", "--recommendation", "found.json", "--cut-offs", "tuning.npz")
    assert "--cut-offs is not used" in found.stderr


def test_names_in_files_are_no_commands_to_the_terminal():
    evil = np.array(["healthy\x1b[31m", "ill\x1b]0;title\x07"])
    with np.load("good.npz") as arrays:
        site = np.where(np.arange(200) < 100, "A\x1b[2J", "B")
        np.savez("evil.npz", **{**arrays, "class_names": evil, "metadata_scanner": site})
    for options in (("evil.npz",), ("a\x1b[1m=evil.npz", "b=poor.npz")):
        said = run(*options, "--recommendation", "found.json").stdout
        assert "\x1b" not in said
        assert "\x07" not in said
        assert r"\x1b[2J" in said
        assert r"ill\x1b]0;title" in said
    with pytest.raises(InvalidInputError, match="healthy") as refused:
        run("evil.npz", "--recommendation", "interview.json")
    assert "\x1b" not in str(refused.value)
    with pytest.raises(InvalidInputError, match="there is no class") as refused:
        run("evil.npz", "--recommendation", "found.json", "--threshold", "AP[c]=0.5")
    assert "\x1b" not in refused.value.hint
