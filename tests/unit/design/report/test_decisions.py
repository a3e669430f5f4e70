import numpy as np
import pytest

from lifelong_core.design import ModelOutputs, validate
from lifelong_core.design.report.basis import samples_behind, samples_text
from lifelong_core.design.report.pages import comparison_html, validation_html
from lifelong_core.design.report.sections import decision_lines, judged_of, rows_of_both, subgroup_columns
from lifelong_core.design.validation.compare import compare
from tests.unit.design.report.test_pages import Tables
from tests.unit.design.validations import recommending

NAMES = ("benign", "malignant")
RNG = np.random.default_rng(3)


def drawn(samples):
    labels = np.arange(samples) % 2
    p = np.clip(RNG.beta(2, 3, size=samples) + 0.25 * labels, 0, 1)
    return labels, np.stack([1 - p, p], axis=1)


DATA, OTHERS = drawn(300), drawn(200)


def judged(answers, **given):
    answers = {"number_of_classes": 2, "prevalences_representative": True, **answers}
    outputs = {"probabilities": DATA[1], "class_names": NAMES, "replicates": 30, **given}
    return validate(recommending("BA", "TPR", **answers), DATA[0], **outputs)


def target(acronym="TPR", value=0.9):
    return {"decision_rule": "target_value", "target_metric": acronym, "target_value": value}


def test_target_and_cut_off_are_said_in_words():
    result = judged(target(), cut_off_data=OTHERS)
    rule, reached, cut = decision_lines(result)
    assert rule == (
        "The decisions of the answered rule (FP2.6) on 300 samples are judged: sensitivity of malignant at least 0.9,"
        " then the best specificity."
    )
    found = result.decisions
    value = found.target.reached
    assert reached.startswith(
        f"Target: sensitivity of malignant at least 0.9. It is {value.estimate:.3f} ({value.low:.3f} to "
    )
    assert reached.endswith(
        {"reached": ": reached.", "missed": ": missed."}.get(found.target.verdict, "target.")
    )
    assert cut == (
        f"Cut-off of the probability of malignant: {found.cut_off.threshold:.3f}, chosen on 200 other samples, where "
        f"sensitivity is {found.cut_off.value:.3f}."
    )


def test_shares_of_use_and_the_half_of_the_cases_are_named():
    shares = {"prevalences_representative": False, "target_prevalences": (0.9, 0.1)}
    _, reached, cut = decision_lines(judged({**target("PPR", 0.3), **shares}))
    assert "share of positive decisions of malignant at most 0.3" in reached
    assert "at the stated class shares of use" in reached
    assert "chosen on 150 samples of the other half of the cases, at the stated class shares of use" in cut


@pytest.mark.parametrize(
    ("answers", "given", "words"),
    [
        ({"decision_rule": None}, {}, None),
        ({"decision_rule": "argmax"}, {}, "highest probability."),
        ({}, {"decisions": DATA[0]}, "The decisions that were given for 300 samples are judged."),
        (target(), {"decisions": DATA[0]}, "The answered rule (FP2.6) is: sensitivity of malignant"),
        (
            target(),
            {"cut_off_data": (np.zeros(200, int), OTHERS[1])},
            "class malignant does not occur among the 200 cases",
        ),
    ],
)
def test_the_source_of_the_decisions_is_said(answers, given, words):
    lines = decision_lines(judged(answers, **given))
    assert lines == [] if words is None else words in lines[0]
    page = validation_html(judged(answers, **given))
    assert ('id="decisions"' in page) is (words is not None)


def test_the_likeliest_class_stands_beside_in_the_report():
    result = judged(target(), cut_off_data=OTHERS)
    rows = rows_of_both(result)
    assert [row.label for row in rows] == ["BA", "TPR", "TPR", "TPR"]
    page = validation_html(result)
    assert "Judged decisions and the likeliest class on the same samples" in page
    for row in rows:
        assert row.judged in page
        assert row.by_likeliest in page
    assert rows_of_both(judged({"decision_rule": "argmax"})) == []


def test_a_comparison_says_it_of_each_model():
    answers = {"number_of_classes": 2, "prevalences_representative": True, **target()}
    models = {name: ModelOutputs(probabilities=DATA[1], cut_off_data=OTHERS) for name in ("old", "new")}
    found = compare(recommending("BA", **answers), DATA[0], models, class_names=NAMES, replicates=20)
    page = comparison_html(found)
    assert page.count("chosen on 200 other samples") == 2


SITES = {"metadata": {"site": np.where(np.arange(300) % 3 == 0, "A", "B")}}


def test_the_cut_off_is_a_probability_at_the_class_shares_of_the_data():
    shares = {"prevalences_representative": False, "target_prevalences": (0.98, 0.02)}
    *_, cut = decision_lines(judged({**target("PPV", 0.1), **shares}))
    assert "(as the model gives it, at the class shares of the data and not of use), chosen on" in cut
    *_, cut = decision_lines(judged(target()))
    assert "as the model gives it" not in cut


def test_subgroups_tell_how_many_samples_are_judged():
    asked = {"number_of_classes": 2, "prevalences_representative": True, **target()}
    result = validate(
        recommending("MCC", "AUROC", **asked), DATA[0], probabilities=DATA[1], replicates=30, **SITES
    )
    judged_at_all = result.decisions.samples
    assert judged_at_all == 150
    of_decisions, of_scores = subgroup_columns(result)
    assert [samples_behind(result, result.value(label)) for label in ("MCC", "AUROC")] == [150, 300]
    counts = [judged_of(group, of_decisions) for group in result.subgroups]
    assert sum(counts) == 150
    assert all(0 < count < group.samples for count, group in zip(counts, result.subgroups, strict=True))
    assert [judged_of(group, of_scores) for group in result.subgroups] == [100, 200]
    page = validation_html(result)
    ((caption, rows),) = (
        (caption, rows) for caption, rows in Tables(page).rows.items() if "Metrics by subgroup" in caption
    )
    assert "Judged: samples behind MCC; a cut-off was chosen on the others." in caption
    assert rows[0][2:5] == ["Samples", "Judged", "Cases"]
    assert [row[2:4] for row in rows[1:]] == [
        ["300", "150"],
        *([str(group.samples), str(count)] for group, count in zip(result.subgroups, counts, strict=True)),
    ]
    assert "<dt>Samples</dt><dd>300 (decisions are judged on 150)</dd>" in page
    assert "300 samples of 300 independent cases; decisions are judged on 150;" in page
    assert "all judged samples" in page


def test_where_all_are_judged_nothing_is_said_of_it():
    result = judged(target(), cut_off_data=OTHERS, **SITES)
    page = validation_html(result)
    assert "judged on 300" not in page
    assert ">Judged<" not in page
    assert "<dt>Samples</dt><dd>300</dd>" in page
    assert samples_text(result) == "300 samples"
