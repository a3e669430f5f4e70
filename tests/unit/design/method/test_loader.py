"""The recommendation document: complete, free of ambiguity, and refused where it is damaged."""

import itertools

import pytest
import yaml

from lifelong_core.design import MethodError
from lifelong_core.design.method.loader import build_method, load_method
from lifelong_core.design.problem_fingerprint import FIELDS
from lifelong_core.metrics import METRICS
from tests.unit.design.conftest import REPOSITORY

TABLES = ["S2", "S3", "S4", "S5_step1", "S5_step2"]


@pytest.mark.parametrize("name", TABLES)
def test_every_combination_of_answers_hits_exactly_one_row_and_every_row_is_hit(method, name):
    table = next(table for table in method.tables if table.id == name)
    domains = [method.question(field).values for field in table.inputs]
    hits = [
        [row.id for row in table.rows if row.possible(dict(zip(table.inputs, combination, strict=True)))]
        for combination in itertools.product(*domains)
    ]
    assert {len(hit) for hit in hits} == {1}
    assert {hit[0] for hit in hits} == {row.id for row in table.rows}


def test_every_field_has_a_question_that_explains_itself(method):
    assert tuple(question.field for question in method.questions) == FIELDS
    for question in method.questions:
        assert question.question.endswith("?")
        assert all((question.example, question.pitfall, question.asked_when, question.name, question.source))
        assert all(answer.meaning.endswith(".") and answer.label for answer in question.answers)


def test_every_item_of_the_source_is_asked_for(method):
    items = {"N_CLASSES", "FP2.6", "FP4.1", "FP4.2", "FP4.3", "FP5.1", "FP5.3"}
    items |= {f"FP2.5.{number}" for number in range(1, 6)} | {f"FP2.7.{number}" for number in range(1, 4)}
    assert items <= {question.id for question in method.questions}


def test_every_row_says_where_it_comes_from_and_how_sure_it_is(method):
    levels = {row.confidence for table in method.tables for row in table.rows}
    assert levels == set(method.meta.confidence)
    assert all(row.source for table in method.tables for row in table.rows)


def test_the_bento_takes_its_files_along():
    bento = yaml.safe_load((REPOSITORY / "bentofile.yaml").read_text())
    assert "lifelong_core/**/*.yaml" in bento["include"]


def test_it_is_read_once():
    assert load_method() is load_method()


def row(parts, name):
    return next(row for table in parts["tables"] for row in table["rows"] if row["id"] == name)


def guide(parts, name):
    return next(guide for guide in parts["guides"] if guide["id"] == name)


def table(parts, name):
    return next(table for table in parts["tables"] if table["id"] == name)


def ambiguous(parts):
    row(parts, "S4.1")["when"] = {"class_scores_available": [True]}


def uncovered(parts):
    table(parts, "S4")["rows"] = [item for item in table(parts, "S4")["rows"] if item["id"] != "S4.1"]


def unreachable(parts):
    table(parts, "S4")["rows"].append(
        {**row(parts, "S4.1"), "id": "S4.9", "when": {"class_scores_available": []}}
    )


def unknown_guide(parts):
    row(parts, "S4.2")["guide"] = "DG4.7"


def unknown_metric(parts):
    row(parts, "S4.1")["metrics"] = [{"metric": "AUCROC"}]


def unknown_metric_of_a_guide(parts):
    guide(parts, "DG2.2")["options"][0]["metrics"] = [{"metric": "BAcc"}]


def unknown_field(parts):
    row(parts, "S4.1")["when"]["prevalence_representative"] = [False]


def unknown_answer(parts):
    row(parts, "S3.0")["when"] = {"decision_rule": ["nothing"]}


def unknown_source_of_a_parameter(parts):
    row(parts, "S2.2")["metrics"][0]["parameters"]["costs"] = "cost"


def unknown_option(parts):
    guide(parts, "DG4.1")["rules"][0]["choose"] = "ROC"


def unknown_default(parts):
    guide(parts, "DG2.1")["default"]["option"] = "NEC"


def rule_behind_one_that_always_decides(parts):
    rules = guide(parts, "DG2.2")["rules"]
    rules.insert(0, {**rules[0], "when": {}})


def condition_that_never_holds(parts):
    guide(parts, "DG4.1")["rules"][0]["when"] = {"class_imbalance": ["never"]}


def guide_in_a_circle(parts):
    guide(parts, "DG3.5")["options"][0]["then"] = "DG3.4"


def guide_that_takes_over_what_it_does_not_offer(parts):
    guide(parts, "DG3.3")["rules"][0]["like"] = "DG3.4"
    del guide(parts, "DG3.3")["rules"][0]["choose"]


def rule_that_says_nothing(parts):
    del guide(parts, "DG2.2")["rules"][0]["choose"]


def condition_on_a_number(parts):
    guide(parts, "DG4.1")["rules"][0]["when"] = {"target_value": ["high"]}


def neither_metrics_nor_guide(parts):
    del row(parts, "S4.2")["guide"]


def no_reason_for_a_rejection(parts):
    table(parts, "S4")["rejections"].pop()


def offered_but_not_in_the_pool(parts):
    table(parts, "S4")["pool"] = ["AUROC"]


def the_same_row_twice(parts):
    row(parts, "S4.2")["id"] = "S4.1"


def question_missing(parts):
    parts["questions"].pop(3)


def question_of_another_item(parts):
    parts["questions"][2]["id"] = "FP2.7"


def answer_missing(parts):
    parts["questions"][2]["answers"].pop()


def question_that_waits_for_a_later_one(parts):
    parts["questions"][0]["applies"] = {"invalid_outputs": [True]}


def mend_of_an_unknown_field(parts):
    parts["contradictions"][0]["resolutions"][0]["answers"] = {"rule": None}


def condition_in_words(parts):
    parts["contradictions"][0]["when"] = "decision_rule == 'target_value'"


def unknown_key(parts):
    row(parts, "S4.1")["metric"] = "AUROC"


def no_such_confidence(parts):
    row(parts, "S4.1")["confidence"] = "certain"


def companion_unknown(parts):
    parts["relations"]["companions"][0]["metrics"] = ["BA", "sensitivity"]


def answer_that_is_ruled_out_without_a_contradiction(parts):
    parts["questions"][2]["answers"][2]["offered"] = {"number_of_classes": ["binary"]}


def answer_that_waits_for_a_later_question(parts):
    parts["questions"][1]["answers"][0]["offered"] = {"decision_rule": ["argmax"]}


DAMAGES = {
    ambiguous: "these rows all fit: S4.1, S4.2",
    uncovered: "no row fits",
    unreachable: "no answers lead to S4.9",
    unknown_guide: "no guide 'DG4.7'. Is DG4.1 meant",
    unknown_metric: "no metric 'AUCROC'. Is AUROC meant",
    unknown_metric_of_a_guide: "no metric 'BAcc'",
    unknown_field: "no input 'prevalence_representative'. Is prevalences_representative meant",
    unknown_answer: "no answer 'nothing'",
    unknown_source_of_a_parameter: "no field 'cost'. Is costs meant",
    unknown_option: "no option 'ROC'",
    unknown_default: "no option 'NEC'",
    rule_behind_one_that_always_decides: "can never decide",
    condition_that_never_holds: "never holds",
    guide_in_a_circle: "DG3.4 -> DG3.5 -> DG3.4 goes round in a circle",
    guide_that_takes_over_what_it_does_not_offer: "no option 'F_beta'",
    rule_that_says_nothing: "choose an option or to follow a guide",
    condition_on_a_number: "target_value has no answers that a condition could name",
    neither_metrics_nor_guide: "either metrics or a guide",
    no_reason_for_a_rejection: "no reason why AP is refused",
    offered_but_not_in_the_pool: "no metric of the pool 'AP'",
    the_same_row_twice: "S4.1 exists more than once",
    question_missing: "expected a question about target_class",
    question_of_another_item: "FP2.7 is not the item of decision_rule",
    answer_missing: "expected the answers",
    question_that_waits_for_a_later_one: "depends on later ones",
    mend_of_an_unknown_field: "no field 'rule'",
    condition_in_words: "expected a condition",
    unknown_key: "Extra inputs",
    no_such_confidence: "Input should be 'stated'",
    companion_unknown: "no metric 'sensitivity'",
    answer_that_is_ruled_out_without_a_contradiction: "argmax is not offered for .*, and contradicts nothing",
    answer_that_waits_for_a_later_question: "depends on later ones",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_document_is_refused(parts, damage):
    damage(parts)
    with pytest.raises(MethodError, match=DAMAGES[damage]) as caught:
        build_method(parts)
    assert isinstance(caught.value, LookupError)
    assert caught.value.field


def test_an_undamaged_document_is_not(parts):
    assert build_method(parts) == load_method()


def test_a_metric_that_the_pool_lacks_is_noticed(parts):
    with pytest.raises(MethodError, match="no metric 'KCE'"):
        build_method(parts, metrics=set(METRICS) - {"KCE"})
