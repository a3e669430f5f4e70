"""Content of a report: numbers of the result, reasons for undefined values, verdicts, and escaped text only."""

import html
import json
import re
from html.parser import HTMLParser

import markupsafe
import numpy as np
import pytest

from lifelong_core.design import ProblemFingerprint, recommend
from lifelong_core.design.method.schema import CONFIDENCES
from lifelong_core.design.report.basis import rests_on
from lifelong_core.design.report.pages import LARGEST_DOCUMENT, _detail, comparison_html, validation_html
from lifelong_core.design.report.sections import leader_lines, subgroup_columns, subgroup_text
from lifelong_core.design.report.tables import said_once
from lifelong_core.design.report.words import exact, interval_in_words, number, of
from lifelong_core.design.validation.acceptance import AcceptanceOutcome, AcceptanceThreshold
from lifelong_core.design.validation.acceptance import apply_thresholds as judged_by
from lifelong_core.design.validation.compare import compare
from lifelong_core.design.validation.comparison import Headline, ModelComparison
from lifelong_core.design.validation.result import ValidationResult
from lifelong_core.design.validation.validate import validate
from lifelong_core.design.validation.values.samples import ModelOutputs
from tests.unit.design.interviews import ALL_ALIKE
from tests.unit.design.report.results import (
    SCREENING,
    absent_class,
    advised,
    decisions_only,
    hundred_classes,
    logits,
    patients,
    ten_classes,
    three_models,
    two_classes,
)
from tests.unit.design.validations import recommending

HOSTILE = (
    """</script><script>window.isHit = 1</script>"><img src=x onerror="window.isHit=1">{{ 7 * 7 }}&lt;'"""
)
Row = list[str]


class Tables(HTMLParser):
    """The rows of all tables by their captions; a cell is its exact number, or else its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: dict[str, list[Row]] = {}
        self._caption: str | None = None
        self._is_exact = False
        self._rows: list[Row] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._rows = []
        if tag == "caption":
            self._caption = ""
        if tag == "tr":
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append("")
        if tag == "data":
            self._is_exact = True
            self._rows[-1][-1] += dict(attrs)["value"] or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption" and self._caption is not None:
            self.rows.setdefault(" ".join(self._caption.split()), []).extend([])
            self._rows = self.rows[" ".join(self._caption.split())]
            self._caption = None
        if tag == "data":
            self._is_exact = False
        if tag == "table":
            self._rows = []

    def handle_data(self, data: str) -> None:
        if self._caption is not None:
            self._caption += data
        elif self._rows and self._rows[-1] and not self._is_exact:
            self._rows[-1][-1] += data.strip()


def plain(page: str) -> str:
    """The text of a page, without tags."""
    return " ".join(html.unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page, flags=re.DOTALL)).split())


def judged(result: ValidationResult, *passed: bool | None) -> ValidationResult:
    """The result with a verdict on its first metric, again and again."""
    threshold = AcceptanceThreshold(metric=result.labels[0], value=0.5)
    outcomes = [AcceptanceOutcome(threshold=threshold, value=0.5, passed=one, why="So.") for one in passed]
    return result.model_copy(update={"acceptance": tuple(outcomes)})


@pytest.mark.parametrize("make", [two_classes, ten_classes])
def test_the_tables_hold_the_numbers_of_the_result(make) -> None:
    result = make()
    rows = Tables(validation_html(result)).rows["Values"]
    for value in said_once(result.values):
        numbers = [exact(value.number(bound)) for bound in ("estimate", "low", "high")]
        name = value.label + rests_on(result, value)
        assert [name, of(value, result.class_names), *numbers] in [row[:5] for row in rows]


def test_a_metric_with_one_value_for_both_classes_stands_there_once() -> None:
    rows = Tables(validation_html(two_classes())).rows["Values"]
    assert [row[:2] for row in rows if row[0] == "AUROC"] == [["AUROC", "all classes"]]
    assert sum(row[0] == "AUROC" for row in Tables(validation_html(ten_classes())).rows["Values"]) == 11
    apart = two_classes().values[-1].model_copy(update={"label": "PPV", "class_index": None})
    others = [apart.model_copy(update={"class_index": k, "estimate": k / 3}) for k in (0, 1)]
    assert said_once([apart, *others]) == [apart, *others]


def test_a_threshold_of_one_class_stays_beside_the_value_of_both() -> None:
    result = two_classes()
    threshold = AcceptanceThreshold(metric="AUROC", class_index=1, value=0.5)
    outcomes = judged_by([threshold], result.values)
    page = plain(validation_html(result.model_copy(update={"acceptance": outcomes})))
    assert "✓ Threshold, at least 0.5" in page
    assert "<title>threshold</title>" in validation_html(result.model_copy(update={"acceptance": outcomes}))


def test_a_value_of_another_class_mix_is_shown_and_not_judged() -> None:
    answers = {
        "target_prevalences_known": False,
        "target_prevalences": None,
        "assumed_prevalences": "test_data",
    }
    labels, values = logits("hyperkvasir_therapeutic_interventions", "development_test")
    asked = [AcceptanceThreshold(metric="EC", value=0.01), AcceptanceThreshold(metric="NB@0.1", value=0.4)]
    result = validate(advised(SCREENING | answers, 2), labels, logits=values, thresholds=asked, replicates=20)
    page = validation_html(result)
    cost, benefit = Tables(page).rows["Acceptance thresholds"][1:]
    assert cost[0] == "ECcosts 9:1, prevalence 0.5"
    assert float(cost[3]) == result.value("EC").high
    assert "Not judged: EC depends on the class mix" in cost[-1]
    assert (benefit[0], benefit[3]) == ("NB@0.1", "not defined")
    assert "<title>threshold</title>" not in page
    assert "resampled data sets." not in plain(page)


def test_costs_and_prevalences_stand_beside_the_expected_cost() -> None:
    page = plain(validation_html(patients()))
    assert "EC costs 50:1, prevalence 0.02" in page
    assert "of the use, as stated costs 50:1, prevalence 0.02" in page
    assert "of these data costs 50:1, prevalence 0.497" in page
    assert "NB@0.02 · dyed resection margin prevalence 0.02" in page
    assert "all classes, costs 9:1, prevalence 0.05" in plain(comparison_html(three_models()))


@pytest.mark.parametrize("make", [two_classes, patients, ten_classes, three_models])
def test_no_rounding_error_is_shown_as_a_number(make) -> None:
    page = (comparison_html if make is three_models else validation_html)(make())
    assert (
        re.findall(r"\d[eE][-+]?\d+", plain(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))) == []
    )


@pytest.mark.parametrize("make", [two_classes, patients, ten_classes])
def test_classes_are_named_and_not_numbered(make) -> None:
    text = plain(re.sub(r"<script.*?</script>", "", validation_html(make()), flags=re.DOTALL))
    assert re.findall(r"(?<!likeliest )\bclass \d", text) == []


def test_the_confusion_matrix_can_be_copied() -> None:
    result = ten_classes()
    found = Tables(validation_html(result)).rows
    for name, counts in zip(result.class_names, result.confusion.counts, strict=True):
        assert [name, *map(str, counts), str(sum(counts))] in found["Samples"]
    for name, shares in zip(result.class_names, result.confusion.shares, strict=True):
        wanted = [name, *(f"{100 * share:.1f}" for share in shares if share is not None)]
        assert wanted in found["Share of the row, in per cent"]


def test_what_is_not_defined_says_why() -> None:
    result = absent_class()
    rows = Tables(validation_html(result)).rows["Values"]
    undefined = [value for value in result.values if value.estimate is None]
    assert undefined
    for value in undefined:
        own = [row for row in rows if row[:2] == [value.label, of(value, result.class_names)]]
        assert own
        assert own[0][2:5] == ["not defined", "\N{EN DASH}", "\N{EN DASH}"]
        assert value.reason is not None
        assert value.reason in own[0][-1]
    assert "nan" not in plain(validation_html(result)).lower().split()


def test_what_is_infinite_is_no_number_that_is_missing() -> None:
    answers = ALL_ALIKE | {"number_of_classes": 2, "decision_rule": "optimization", "optimised_metric": "BA"}
    fingerprint = ProblemFingerprint(**answers, class_imbalance=False, equal_class_contribution=True)
    advised = recommend(fingerprint, choices={"DG3.3": "LR+"})
    result = validate(advised, [0, 1] * 10, probabilities=np.eye(2)[[0, 1] * 10], replicates=10)
    assert any(value.infinite for value in result.values)
    assert "∞" in plain(validation_html(result))


def test_decisions_without_scores_have_no_curves() -> None:
    page = validation_html(decisions_only())
    assert "ROC curves" not in page
    assert ["class 0", "10", "10", "20"] in Tables(page).rows["Samples"]


def test_to_abstain_is_a_decision() -> None:
    result = validate(
        advised(ALL_ALIKE | {"class_scores_available": False, "decision_rule": None}, 2),
        [0, 1, 0, 1] * 5,
        decisions=[0, 1, 2, -1] * 5,
        replicates=10,
    )
    rows = Tables(validation_html(result)).rows["Samples"]
    assert rows[0][1:] == ["class 0", "class 1", "abstain", "no valid output", "all"]
    assert rows[1:] == [["class 0", "5", "0", "5", "0", "10"], ["class 1", "0", "5", "0", "5", "10"]]


def hostile() -> ValidationResult:
    """A result with names that people with bad intentions chose."""
    result = two_classes()
    groups = tuple(
        group.model_copy(update={"attribute": HOSTILE, "key": HOSTILE}) for group in result.subgroups
    )
    return result.model_copy(
        update={
            "name": HOSTILE,
            "class_names": (HOSTILE, "other"),
            "subgroups": groups,
            "warnings": (HOSTILE,),
        }
    )


def test_hostile_names_are_text() -> None:
    page = validation_html(hostile())
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 1
    assert f"<title>Validation of {markupsafe.escape(HOSTILE)}</title>" in page
    assert HOSTILE in Tables(page).rows["Samples"][1]


def test_hostile_models_are_text() -> None:
    page = comparison_html(three_models((HOSTILE, "b", "c")))
    assert "<img" not in page
    assert page.count("<script") == page.count("</script>") == 1


@pytest.mark.parametrize("make", [hostile, three_models])
def test_the_document_lies_in_the_page(make) -> None:
    given = make()
    page = (comparison_html if make is three_models else validation_html)(given)
    found = re.search(r'<script type="application/json" id="document">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == given.to_document()


def test_equal_results_give_equal_pages() -> None:
    result = two_classes()
    again = ValidationResult.from_json(result.to_json())
    assert validation_html(again) == validation_html(result)


@pytest.mark.parametrize(
    ("passed", "verdict"),
    [
        ((), "No verdict"),
        ((True, True), "✓ Accepted"),
        ((True, False, None), "✗ Not accepted"),
        ((True, None), "? Undecided"),
    ],
)
def test_the_verdict_stands_first(passed: tuple[bool | None, ...], verdict: str) -> None:
    text = plain(validation_html(judged(ten_classes(), *passed)))
    assert verdict in text
    assert text.index(verdict) < text.index("At a glance")


def test_what_is_still_open_is_said() -> None:
    result = decisions_only()
    assert result.recommendation.open_choices
    assert "Still to be decided by a person" in plain(validation_html(result))


def test_the_answers_stand_there_in_words() -> None:
    page = plain(validation_html(two_classes()))
    for words in (
        "Above which risk does one act? DG3.2.risk_threshold 0.1",
        "weigh costs and benefits",
        "dyed lifted polyp: 0.95",
    ):
        assert words in page


def test_many_classes_stay_small_and_the_page_says_so() -> None:
    result = hundred_classes()
    page = validation_html(result)
    assert len(result.to_json()) < LARGEST_DOCUMENT or 'id="document"' not in page
    assert len(page) < 500_000 + (len(result.to_json()) if 'id="document"' in page else 0)
    assert "Of 100 classes, the 12 with the smallest areas are shown." in plain(page)
    assert page.count('aria-label="ROC curve of') == 12
    worst = sorted(result.roc_curves, key=lambda curve: curve.area)[:12]
    for curve in worst:
        assert f'aria-label="ROC curve of {result.class_names[curve.class_index]}:' in page


def test_all_counts_of_many_classes_can_be_copied() -> None:
    result = hundred_classes()
    found = re.search(r"<pre>(.*?)</pre>", validation_html(result), re.DOTALL)
    assert found is not None
    rows = [line.split("\t")[1:] for line in found[1].split("\n")[1:]]
    assert [[int(count) for count in row] for row in rows] == [list(row) for row in result.confusion.counts]


def test_a_large_document_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifelong_core.design.report.pages.LARGEST_DOCUMENT", 100)
    page = validation_html(two_classes())
    assert "application/json" not in page
    assert "too large for this page" in page


def test_a_comparison_holds_the_ranks() -> None:
    comparison = three_models()
    found = Tables(comparison_html(comparison)).rows
    for ranking in comparison.rankings:
        rows = found[f"Order of the models by {ranking.label}"]
        for model in ranking.models:
            assert [repr(model.rank), model.model, exact(model.score), repr(model.mean_rank)] in [
                row[:4] for row in rows
            ]
    chances = found["Probability of being best, in per cent of the resamples"]
    for name in comparison.results:
        shares = [next(m.best for m in r.models if m.model == name) for r in comparison.rankings]
        assert [name, *map(repr, shares)] in [row[: 1 + len(shares)] for row in chances]


def test_a_comparison_names_who_comes_first() -> None:
    assert "as trained comes first" in plain(comparison_html(three_models()))


def test_equal_models_have_no_leader() -> None:
    comparison = three_models()
    tied = comparison.mean_then_rank.model_copy(
        update={"models": tuple(reversed(comparison.mean_then_rank.models))}
    )
    assert "No clear leader" in plain(comparison_html(comparison.model_copy(update={"mean_then_rank": tied})))


def test_a_leader_by_the_only_way_there_is_is_named() -> None:
    comparison = three_models()
    alone = comparison.mean_then_rank.model_copy(update={"models": (), "labels": ()})
    page = plain(comparison_html(comparison.model_copy(update={"mean_then_rank": alone})))
    assert "as trained comes first By the one way" in page
    assert "of the resampled data sets by rank then mean." in page


def test_a_threshold_of_the_one_class_of_a_metric_is_drawn_for_each_model() -> None:
    comparison = three_models()
    (wanted,) = {outcome.threshold.class_index for outcome in comparison.results["noisy"].acceptance}
    ranking = next(one for one in comparison.rankings if one.label == "NB@0.1")
    assert (wanted, ranking.class_index) == (None, 1)
    assert comparison_html(comparison).count("<title>threshold</title>") == 3


def test_subgroups_stand_there_with_their_intervals() -> None:
    result = two_classes()
    columns = subgroup_columns(result)
    assert columns
    found = Tables(validation_html(result)).rows
    (rows,) = (rows for caption, rows in found.items() if "Metrics by subgroup" in caption)
    for group in result.subgroups:
        own = next(row for row in rows if row[:2] == [group.attribute, group.key])
        assert own[2:4] == [str(group.samples), str(group.cases)]
        for cell, column in zip(own[4:], columns, strict=False):
            value = subgroup_text(group, column)
            ends = f"{value.low!r}to{value.high!r}" if value.has_interval else "no interval"
            assert cell == f"{value.estimate!r}{ends}"
    few = next(row for row in rows if row[1] == "unknown")
    assert "only 6 independent cases" in few[-1]
    assert "of class dyed lifted polyp" in few[-1]
    page = plain(validation_html(result))
    assert "⚠ scanner: unknown" in page
    assert "estimate of all samples" in page


def test_a_subgroup_without_an_interval_says_why() -> None:
    labels = np.arange(40) % 2
    site = np.where(np.arange(40) == 0, "alone", "other")
    result = validate(
        advised(ALL_ALIKE, 2),
        labels,
        probabilities=np.eye(2)[labels] * 0.8 + 0.1,
        metadata={"site": site},
        class_names=("healthy", "sick"),
        replicates=20,
    )
    page = plain(validation_html(result))
    assert "BA is not defined: no reference sample of class sick" in page
    ill = validate(
        recommending("AC", number_of_classes=2),
        labels,
        decisions=labels,
        metadata={"site": site},
        replicates=20,
    )
    page = plain(validation_html(ill))
    assert "no interval" in page
    assert "AC: no interval: every class or decision that counts in it needs two independent cases." in page


def test_many_subgroups_are_a_table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifelong_core.design.report.sections.MOST_DRAWN", 2)
    page = plain(validation_html(two_classes()))
    assert "More than 2 subgroups are not drawn." in page
    assert "⚠ scanner: unknown" not in page


def test_a_near_miss_can_be_told_from_its_threshold() -> None:
    result = ten_classes()
    threshold = AcceptanceThreshold(metric=result.labels[0], value=0.95, by="estimate")
    value = result.value(result.labels[0]).model_copy(update={"estimate": 0.9499996})
    (outcome,) = judged_by([threshold], [value])
    page = plain(validation_html(result.model_copy(update={"acceptance": (outcome,)})))
    assert "at least 0.95, by the estimate 0.9499996 ✗ missed" in page
    assert "The estimate, 0.9499996, is below 0.95." in page
    assert "✗ Threshold, at least 0.95, by the estimate: 0.9499996" in page


def test_how_sure_a_step_is_is_said_in_words() -> None:
    result = two_classes()
    steps = [
        step.model_copy(update={"confidence": sure})
        for step, sure in zip(result.recommendation.steps, CONFIDENCES, strict=False)
    ]
    recommendation = result.recommendation.model_copy(update={"steps": tuple(steps)})
    page = plain(validation_html(result.model_copy(update={"recommendation": recommendation})))
    for words in ("stated by a source", "the only consistent reading", "inferred", "our proposal"):
        assert f"How sure: {words} ." in page


def test_a_comparison_shows_the_subgroups_of_each_model() -> None:
    labels, values = logits("hyperkvasir_therapeutic_interventions", "development_test")
    models = {name: ModelOutputs(logits=values * size) for name, size in (("first", 1), ("second", 2))}
    found = compare(
        advised(ALL_ALIKE, 2), labels, models, metadata={"half": np.arange(labels.size) % 2}, replicates=10
    )
    rows = Tables(comparison_html(found)).rows
    for name in models:
        (own,) = (rows[caption] for caption in rows if caption.startswith(f"{name} (metrics of a class"))
        assert [row[:3] for row in own[1:]] == [["all", "", "198"], ["half", "0", "99"], ["half", "1", "99"]]


def test_scores_that_rank_apart_look_apart() -> None:
    comparison = three_models()
    ranking = comparison.rankings[0]
    models = [
        model.model_copy(update={"score": score})
        for model, score in zip(ranking.models, (0.99312, 0.99278, 0.5), strict=True)
    ]
    rankings = (ranking.model_copy(update={"models": tuple(models)}), *comparison.rankings[1:])
    page = comparison_html(comparison.model_copy(update={"rankings": rankings}))
    assert ">0.9931</data>" in page
    assert ">0.9928</data>" in page


def calibrations() -> ModelComparison:
    """Two models that are compared by a calibration error and by one metric without a reference."""
    labels, values = logits("hyperkvasir_therapeutic_interventions", "development_test")
    models = {name: ModelOutputs(logits=values * size) for name, size in (("first", 1), ("second", 3))}
    return compare(recommending("ECE", "BA", number_of_classes=2), labels, models, replicates=20)


def test_a_calibration_error_is_drawn_as_it_ranks() -> None:
    comparison = calibrations()
    page = plain(comparison_html(comparison))
    assert "excess over perfectly calibrated predictions, by which models are ranked" in page
    ranking, plot, *_ = _detail(comparison, comparison.rankings[0])
    assert ranking.basis == "excess"
    assert plot.title == "Excess of ECE of each model"
    for row, model in zip(plot.rows, ranking.models, strict=True):
        value = comparison.results[model.model].value("ECE")
        assert row.text == number(model.score) == number(value.calibrated.excess)
        assert row.note == f"the error: {interval_in_words(value)}"
        assert row.dot.low is None
    assert plot.reference is not None
    assert "calibrated predictions: no excess" in page
    places = [row.dot.x for row in plot.rows]
    assert places == sorted(places)
    _, usual, *_ = _detail(comparison, comparison.rankings[1])
    assert usual.reference is None
    assert usual.rows[0].dot.low is not None


def test_orders_over_all_metrics_are_named_after_what_they_are() -> None:
    page = plain(comparison_html(three_models()))
    for words in ("Rank then mean Each metric ranks the models", "Mean then rank The values of each metric"):
        assert words in page
    assert "Mean of ranks Place in resamples, mean" in page
    assert "Mean of places" not in page
    assert "Mean place" not in page
    assert "all, rank then mean all, mean then rank" in page


def test_who_comes_first_is_said_in_words() -> None:
    comparison = three_models()
    title, why = leader_lines(comparison)
    assert title == "as trained comes first"
    assert "of the resampled data sets by mean then rank." in why
    assert why.endswith(f"{comparison.headline.why} Read the order by rank then mean first.")
    label = comparison.rankings[0].label
    asked = comparison.model_copy(update={"headline": Headline(label=label, why="It was asked for.")})
    assert leader_lines(asked)[1].startswith(f"By {label}, in ")
    assert leader_lines(asked)[1].endswith("It was asked for.")
    turned = comparison.mean_then_rank.model_copy(
        update={"models": tuple(reversed(comparison.mean_then_rank.models))}
    )
    tied = comparison.model_copy(update={"mean_then_rank": turned})
    assert leader_lines(tied)[0] == "No clear leader"
    none = {
        name: getattr(comparison, name).model_copy(update={"models": ()})
        for name in ("rank_then_mean", "mean_then_rank")
    }
    assert leader_lines(comparison.model_copy(update=none))[0] == "No order"
