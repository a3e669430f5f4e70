"""`lifelong recommend` as a person types, and as a script calls it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong.commands.interview.files import read_answers
from lifelong_core.deploy import LabeledLogits, PostProcessingHead, TargetValue
from lifelong_core.design import Interview, Recommendation
from lifelong_core.store import register_calibration
from lifelong_core.values.errors import InvalidInputError
from tests.unit.design.recommendation.test_progress import SCREENING

STATE = "recommendation-interview.json"

TYPED = [
    "benign, malignant", "y", "reach", "sens", "malignant", "95 %", "y", "y", "y", "0 1; 20 0", "1", "n", "y",
    "patient", "n",
]  # fmt: skip
"""What a person answers for a screening task."""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ask(*typed: str, options: tuple[str, ...] = (), status: int = 0) -> Result:
    text = "".join(f"{line}\n" for line in typed)
    result = CliRunner().invoke(cli, ["recommend", *options], input=text, catch_exceptions=False)
    assert result.exit_code == status, result.output
    return result


def kept() -> Interview:
    return Interview.from_json(Path(STATE).read_text())


def script(answers: object, *options: str, status: int = 0) -> Result:
    Path("answers.yaml").write_text(json.dumps(answers))
    return ask(options=("--answers", "answers.yaml", *options), status=status)


def written(path: str = "found.json") -> Recommendation:
    return Recommendation.from_json(Path(path).read_text())


def test_a_screening_task_gets_its_metrics_with_the_reasons():
    said = ask(*TYPED, options=("--output", "found.json")).stdout
    assert "In short: EC, TNR@(TPR=0.95), AP" in said
    for part in (
        "How will a score become a decision when the algorithm is used?",
        "0 benign, 1 malignant",
        "malignant taken for benign costs 20",
        "left out AC, BA, MCC: It counts every mix-up alike",
        "Weighted Cohen's kappa or expected cost: EC, by default.",
        "resample whole",
    ):
        assert part in said
    assert written().fingerprint == kept().fingerprint
    assert written().fingerprint.model_dump(exclude_none=True) == {"schema_version": 1, **SCREENING}
    assert max(len(line) for line in said.splitlines()) <= 100


def test_it_goes_on_where_it_was_left():
    said = ask(*TYPED[:5], "s").stdout
    assert f"Your answers are in {STATE}" in said
    assert len(kept().history) == 4
    said = ask(*TYPED[5:]).stdout
    assert "where 5 questions are answered" in " ".join(said.split())
    assert "In short" in said
    assert "Continuing" not in ask("s", options=("--restart",)).stdout
    assert kept().history == ()
    ask("2", "s")
    assert "where 1 question is answered" in " ".join(ask("s").stdout.split())


def test_the_end_of_the_input_loses_nothing():
    ask(*TYPED[:7], status=1)
    assert len(kept().history) == 6
    assert "In short" in ask(*TYPED[7:]).stdout


def test_going_back_proposes_what_was_answered():
    said = ask(*TYPED[:3], "b", "", "b", "3", "s").stdout
    assert "reach a target" in said
    assert "So far" in said
    assert kept().fingerprint.decision_rule == "argmax"
    assert "nothing to go back to" in ask("b", "s", options=("--restart",)).stdout


def test_questions_are_explained_and_mistakes_too():
    said = ask("?", "one", "3", "perhaps", "", "s").stdout
    for part in (
        "thesis sections 2.3.1 and 4.1.3",
        "Expected a whole number, got 'one'",
        "Expected yes or no, got 'perhaps'",
        "Please answer",
    ):
        assert part in said
    assert kept().fingerprint.number_of_classes == 3


def test_an_answer_can_be_changed_at_any_time():
    said = ask(*TYPED, "a", "c FP2.6.target_value", "0.9", "c FP9", "what", "").stdout
    assert "Target value: 0.95" in said
    assert "there is no item" in said.lower()
    assert "In short: EC, TNR@(TPR=0.9), AP" in said


def test_a_choice_can_be_made_otherwise():
    said = ask(*TYPED, "c DG2.1", "wck", "c DG9.9", "c DG2.2", "").stdout
    assert "chosen so far" in said
    assert "DG2.2 is no choice" in said
    assert "In short: WCK" in said
    assert kept().choices == {"DG2.1": ("WCK",)}
    assert "In short: EC" in ask("b", "").stdout


def test_going_back_from_a_question_out_of_turn_loses_nothing():
    said = ask(*TYPED[:4], "c FP2.6", "b", "c", "s").stdout
    assert len(kept().history) == 3
    assert said.count("Which class is the one that must be found?") == 2
    assert "Say which of them, such as c FP2.6." in said


def test_looking_at_an_answer_again_does_not_end_the_interview():
    said = ask(*TYPED, "c N_CLASSES", "", "c DG2.1", "", "c FP2.6.target_value", "b", "c DG2.1", "b").stdout
    assert said.count("In short") == 5


def test_a_class_may_have_the_name_of_a_command():
    """As the grades of breast density have: a, b, c and d."""
    said = ask("a, b, c, d", "y", "4", "c DG3.2.perspective", "1", "c FP2.6.target_class", "b", "s").stdout
    assert "= 0 a, 1 b, 2 c, 3 d" in said
    assert "back  ? more  answers  stop" in said
    assert kept().fingerprint.target_class == 1
    ask("c FP2.6.target_class", "back", "c FP2.6.target_class", "stop")
    assert kept().fingerprint.target_class == 1


def test_very_many_classes_do_not_flood_the_screen():
    names = ", ".join(f"class-{k}" for k in range(1000))
    said = ask(names, "y", "4", "n", "c FP2.6.target_class", "class-500", "a", "s").stdout
    assert "48 class-48, ..., 999 class-999" in " ".join(said.split())
    assert said.count("class-49,") == 1  # where it was typed
    assert "Number of classes: 1000, with names" in said
    assert kept().fingerprint.target_class == 500


def test_classes_in_another_order_keep_what_was_said_of_them():
    said = ask(*TYPED, "c N_CLASSES", "malignant, benign", "", options=("--output", "found.json")).stdout
    assert "So far          benign, malignant" in said
    assert "Costs 0, 20; 1, 0" in said
    assert written().fingerprint.target_class == 0


def test_a_narrow_terminal_loses_no_word(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    said = ask(*TYPED).stdout
    assert max(len(line) for line in said.splitlines()) <= 40
    assert "…" not in said
    assert said.count("\nb back  ? more  a answers  s stop\n") >= len(TYPED)


def test_a_contradiction_is_explained_at_once_and_mended():
    said = ask("2", "y", "reach a target", "c N_CLASSES", "5", "9", "2", "b", "s").stdout
    assert "These answers contradict each other" in said
    assert "one cut-off on one score" in said
    assert "number from 1 to 2" in said


def test_costs_of_other_classes_are_explained_and_lose_nothing():
    typed = [*TYPED[:8], "y", "0 1 1; 1 0 1; 1 1 0", "s"]
    said = ask(*typed).stdout
    assert "These answers contradict each other" in said
    assert len(kept().fingerprint.costs) == 3


def test_a_name_of_several_words_is_no_command():
    ask("y", "reach", "sens", "s phase", "s", options=("--classes", "g1 phase,s phase"))
    assert kept().fingerprint.target_class == 1


def test_what_no_source_decides_is_asked_with_its_arguments():
    answers = [
        "benign,malignant", "y", "3", "n", "n", "y", "y", "y", "3", "n", "n", "n",
    ]  # fmt: skip
    said = ask(*answers, "7", "mcc", "F_beta", "").stdout
    assert "your choice" in said
    assert "-  Blind to predictive values" in said
    assert "number from 1 to 3" in said
    assert "In short: MCC, F_beta (beta=1.0), AUROC, AP" in said


def test_data_propose_answers_to_be_confirmed():
    np.savez(
        "data.npz",
        labels=np.repeat([0, 1], [90, 10]),
        logits=np.random.default_rng(0).normal(size=(100, 2)),
        groups=np.arange(100) // 2,
    )
    options = ("--data", "data.npz", "--prevalence", "0.99,0.01")
    said = ask("", "", "3", "n", "n", "", options=options, status=1).stdout
    assert "Each sample has 2 scores." in said
    assert "The class shares are 0.9, 0.1" in said
    found = kept().fingerprint
    assert (found.number_of_classes, found.class_scores_available) == (2, True)
    assert found.prevalences_representative is False
    assert found.dependent_cases is None
    Path(STATE).unlink()
    ask("s", options=(*options, "--yes"))
    assert kept().fingerprint.dependent_cases is True


@pytest.mark.parametrize(
    "document",
    [
        {**SCREENING, "class_names": ["benign", "malignant"]},
        {"class_names": ["benign", "malignant"], "answers": SCREENING},
        {
            "class_names": ["benign", "malignant"],
            "answers": {
                **{
                    name: value for name, value in SCREENING.items() if name not in ("decision_rule", "costs")
                },
                "FP2.6": "reach a target",
                "FP2.5.4.costs": "0 1; 20 0",
                "target_class": "malignant",
                "target_value": "95 %",
            },
        },
    ],
)
def test_a_script_gives_all_answers(document):
    said = script(document, "--output", "found.json").stdout
    assert ">" not in said
    assert "For malignant" in said
    assert [metric.label for metric in written().metrics] == ["EC", "TNR@(TPR=0.95)", "AP"]
    assert not Path(STATE).exists()


def test_what_yaml_takes_for_a_number_or_a_truth_is_what_one_typed():
    Path("answers.yaml").write_text("output_interpretation: no\nFP2.6: 1\nFP5.1: 1\nDG3.5.worse_error: 3")
    with pytest.raises(InvalidInputError, match="answers are missing"):
        ask(options=("--answers", "answers.yaml"))
    found = read_answers(Path("answers.yaml"), None).fingerprint
    assert (found.output_interpretation, found.decision_rule) == ("none", "target_value")
    assert (found.class_scores_available, found.worse_error) == (True, "neither")


def test_a_line_that_cannot_be_read_is_named():
    Path("answers.yaml").write_text("answers:\n  FP2.6: argmax\n FP4.3: true")
    with pytest.raises(InvalidInputError, match="line 3"):
        ask(options=("--answers", "answers.yaml"))


def test_data_must_be_of_the_classes_that_have_names():
    np.savez("data.npz", labels=[0, 1, 1], probabilities=np.full((3, 2), 0.5))
    with pytest.raises(InvalidInputError, match=r"probabilities: data\.npz: expected shape") as caught:
        ask("s", options=("--data", "data.npz", "--classes", "a,b,c"))
    assert "(N, 3)" in str(caught.value)
    np.savez("data.npz", labels=[0, 1, 1])
    ask("s", options=("--data", "data.npz", "--classes", "a,b,c", "--yes"))
    assert kept().fingerprint.class_imbalance is True  # the third class never occurs


def test_shares_that_are_none_are_refused() -> None:
    np.savez("data.npz", labels=[0, 1, 1])
    for shares in ("a,b", "", "0.5", "0.5,0.6", "0.2,0.3,0.5", "-1,2"):
        with pytest.raises(InvalidInputError) as caught:
            ask("s", options=("--data", "data.npz", "--prevalence", shares))
        assert caught.value.field == "--prevalence"


def test_shares_may_be_given_in_per_cent():
    np.savez("data.npz", labels=np.repeat([0, 1], 50))
    ask("s", options=("--data", "data.npz", "--prevalence", "99 %, 1 %", "--yes"))
    assert kept().fingerprint.target_prevalences == (0.99, 0.01)


def test_logits_that_do_not_belong_to_the_labels_are_refused():
    np.savez("data.npz", labels=[0, 1, 1], logits=np.zeros((4, 2)))
    with pytest.raises(InvalidInputError, match=r"logits: data.npz: expected one row per label \(3\), got 4"):
        ask("s", options=("--data", "data.npz"))


def test_a_threshold_is_read_before_anything_is_asked(installed):
    installed("tasks", "add", "lesions", "--classes", "benign,malignant")
    with pytest.raises(InvalidInputError, match="expected a metric and the value"):
        installed("recommend", "--attach", "lesions", "--threshold", "high")
    assert not Path(STATE).exists()


def test_choices_and_earlier_documents_are_answers_as_well():
    script({"answers": SCREENING, "choices": {"DG2.1": "WCK"}}, "--output", "found.json")
    assert written().metrics[0].metric == "WCK"
    again = ask(options=("--answers", "found.json", "--json")).stdout
    assert Recommendation.from_json(again) == written()


def test_json_is_alone_on_standard_output():
    result = ask(*TYPED, options=("--json",))
    assert Recommendation.from_json(result.stdout) == kept().recommendation()
    assert "Which class is the one" in result.stderr


def test_a_script_is_told_what_is_missing_or_wrong() -> None:
    for changes, said in (
        ({"decision_rule": None, "costs": None}, "FP2.6 (decision_rule)"),
        ({"target_value": 2}, "target_value: answers.yaml: expected a number of at most 1, got 2."),
        ({"decision_rule": None, "costs": None}, "Without --answers, lifelong recommend asks"),
        ({"class_scores_available": "perhaps"}, "expected yes or no"),
        ({"FP5.1": True}, "class_scores_available and FP5.1 are the same question"),
        ({"choices": ["EC"]}, "choices: answers.yaml: expected names with their values"),
        ({"answers": "argmax"}, "answers: answers.yaml: expected names with their values"),
        ({"class_names": [True, False]}, "Put texts in quotes."),
        ({"surprise": 1}, "there is no item 'surprise'"),
        ({"DG2.1": "BA"}, "DG2.1 offers one of WCK, EC"),
        ({"costs": [[0, 1], [1, 0]]}, "contradict each other"),
        (
            {"class_names": ["a", "b", "c"], "number_of_classes": 2, "target_class": "malignant"},
            "none of the classes",
        ),
        (
            {
                "costs": None,
                "decision_rule": "argmax",
                "unequal_severity": False,
                "unequal_interest": False,
                "class_imbalance": True,
                "imbalance_compensation": True,
                "predictive_values": "unclear",
            },
            "these choices are open: DG2.3 (BA or MCC or NEC)",
        ),
    ):
        with pytest.raises(InvalidInputError) as caught:
            script({**SCREENING, **changes})
        assert said in str(caught.value)


def test_a_file_without_answers_is_refused() -> None:
    for content in (b"", b"[1]", b"{", b"\xff\xfe"):
        Path("answers.yaml").write_bytes(content)
        with pytest.raises(InvalidInputError, match="answers"):
            ask(options=("--answers", "answers.yaml"))


def test_a_damaged_state_is_not_overwritten():
    Path(STATE).write_text('{"history": ["FP2.6"]}')
    with pytest.raises(InvalidInputError, match=STATE):
        ask("2")
    assert Path(STATE).read_text() == '{"history": ["FP2.6"]}'


def test_a_state_that_cannot_be_kept_is_said_before_anything_is_asked(folder):
    (folder / "file").touch()
    with pytest.raises(InvalidInputError, match="cannot be read") as caught:
        ask("2", options=("--state", "file/state.json"))
    assert caught.value.field == "--state"


def test_options_that_do_not_go_together_are_refused() -> None:
    Path("answers.yaml").touch()
    for options in (
        ("--threshold", "BA=0.8"),
        ("--yes",),
        ("--prevalence", "0.9,0.1"),
        ("--answers", "answers.yaml", "--restart"),
        ("--answers", "answers.yaml", "--data", "answers.yaml"),
    ):
        assert "Error" in ask(options=options, status=2).stderr


def test_names_must_fit_the_answers():
    with pytest.raises(InvalidInputError, match="3 names, but the answers say 2 classes"):
        script(SCREENING, "--classes", "a,b,c")
    assert "For malignant" in script(SCREENING, "--classes", "benign,malignant").stdout


def test_classes_in_another_order_are_refused(installed):
    """Else costs and the class of interest would be turned round."""
    named = {**SCREENING, "class_names": ["benign", "malignant"]}
    here, there = "benign, malignant in the answers", "malignant, benign in"
    with pytest.raises(InvalidInputError, match=f"{here}, and {there} --classes"):
        script(named, "--classes", "malignant,benign")
    installed("tasks", "add", "lesions", "--classes", "malignant,benign")
    with pytest.raises(InvalidInputError, match=f"{here}, and {there} the task lesions"):
        installed("recommend", "--answers", "answers.yaml", "--attach", "lesions")
    assert_field("--attach", installed, "--answers", "answers.yaml", "--attach", "lesions")
    with pytest.raises(InvalidInputError, match=f"a, b in --classes, and {there} the task lesions") as caught:
        installed("recommend", "--classes", "a,b", "--attach", "lesions")
    assert "--restart" not in str(caught.value)
    assert caught.value.field == "--classes"
    ask(*TYPED[:3], "s")
    with pytest.raises(InvalidInputError, match=f"{here}, and {there} the task lesions.*or --restart"):
        installed("recommend", "--attach", "lesions")


def assert_field(field, installed, *options):
    with pytest.raises(InvalidInputError) as caught:
        installed("recommend", *options)
    assert caught.value.field == field


def test_a_risk_proposes_costs_until_it_changes():
    typed = [*TYPED[:2], "4", "y", "y", "1", "malignant", "10 %", "n", "y"]
    said = ask(*typed, "c FP2.6", "", "c DG3.2.risk_threshold", "20 %", "", "s").stdout
    assert "Enter or y: 0, 1; 9, 0" in said
    assert "Enter or y: 0, 1; 4, 0" in said
    assert kept().fingerprint.costs == ((0, 1), (4, 0))


def test_costs_that_the_task_has_are_not_asked_again(installed):
    installed("tasks", "add", "lesions", "--classes", "benign,malignant", "--costs", "[[0, 1], [7, 0]]")
    answers = {field: value for field, value in SCREENING.items() if field != "costs"}
    Path("answers.yaml").write_text(json.dumps({**answers, "target_class": "malignant"}))
    assert "is attached" in installed("recommend", "--answers", "answers.yaml", "--attach", "lesions")
    with open_store() as store:
        assert store.tasks.get("lesions").costs.tolist() == [[0, 1], [7, 0]]


def test_costs_that_reward_errors_are_warned_of_and_attached_only_with_a_reason(installed):
    said = ask(*["-1 0; 0 -20" if line == "0 1; 20 0" else line for line in TYPED]).stderr
    assert "Warning" not in said  # a right decision pays
    said = ask(
        *["1 0; 0 20" if line == "0 1; 20 0" else line for line in TYPED], options=("--restart",)
    ).stderr
    assert said.count("Warning: costs: where class 0 is true, decision 1 costs 0 and the right one 1:") == 2
    assert "`force_reason`" not in said
    installed("tasks", "add", "lesions", "--classes", "benign,malignant")
    with pytest.raises(InvalidInputError, match="--force-because"):
        ask("y", options=("--attach", "lesions"))
    assert "is attached" in ask("y", options=("--attach", "lesions", "--force-because", "a test")).stdout


def test_it_is_attached_to_a_task(installed):
    installed("tasks", "add", "lesions", "--classes", "benign,malignant")
    Path("answers.yaml").write_text(json.dumps({**SCREENING, "target_class": "malignant"}))
    arguments = ("recommend", "--answers", "answers.yaml", "--attach", "lesions")
    limits = ("--threshold", "TNR@(TPR=0.95)=40 %", "--threshold", "AP[malignant]=0.5")
    assert "Recommendation 1 is attached to lesions with 2 thresholds." in installed(*arguments, *limits)
    assert "Recommendation 2 is attached to lesions with 1 threshold." in installed(*arguments, *limits[:2])
    installed(*arguments, *limits)
    with open_store() as store:
        attached = store.recommendations.current("lesions")
        assert store.tasks.get("lesions").costs.tolist() == [[0, 1], [20, 0]]
    found = [(item.metric, item.value, item.class_index) for item in attached.thresholds]
    assert found == [("TNR@(TPR=0.95)", 0.4, None), ("AP", 0.5, 1)]
    for wrong in ("AP", "=1", "AP=high", "AP=nan", "AP=1e200", "AP[benine]=0.5"):
        with pytest.raises(InvalidInputError) as caught:
            installed(*arguments, "--threshold", wrong)
        assert caught.value.field == "--threshold"
    assert "Give one of benign, malignant, or an index in 0..1." in str(caught.value)


def test_attaching_says_which_rule_holds_and_which_heads_decide_otherwise(installed):
    installed("tasks", "add", "lesions", "--classes", "benign,malignant")
    Path("answers.yaml").write_text(json.dumps({**SCREENING, "target_class": "malignant"}))
    labels = np.arange(400) % 2
    logits = 2 * np.eye(2)[labels] + np.random.default_rng(0).normal(size=(400, 2))
    with open_store() as store:
        store.models.add("lesions", "skin", kind="external", actor="test")
        register_calibration(store, "skin", LabeledLogits(logits, labels), actor="test")
    rule = "sensitivity of malignant at least 0.95, then the best specificity"
    arguments = ("recommend", "--answers", "answers.yaml", "--attach", "lesions")
    said = installed(*arguments)
    assert f"The task decides by this rule: {rule}." in said
    old = "still has other costs and another decision rule (least expected cost)."
    assert f"Note: the default head of skin@1 (version 1) {old}" in said
    assert "lifelong recommend --attach lesions --refit-head" in said
    said = installed(*arguments, "--refit-head")
    assert "Published default head, version 2." in said
    assert "still has" not in said
    assert "Default head, version 2, stays: it decides by these costs" in installed(
        *arguments, "--refit-head"
    )
    (task,) = (one for one in json.loads(installed("tasks", "list", "--json")) if one["task"] == "lesions")
    assert task["decision_rule"] == rule
    first, second = json.loads(installed("heads", "list", "skin", "--json"))
    assert first["decision_rule"] == "least expected cost"
    assert second["decision_rule"].startswith(f"{rule} (cut-off 0.")
    head = PostProcessingHead.from_json(installed("heads", "show", "skin", "2"))
    assert head.decision_rule == TargetValue("TPR", 0.95)


def test_new_heads_belong_to_a_task(installed):
    assert ask("1", options=("--refit-head",), status=2).output.endswith(
        "--refit-head belongs to --attach.\n"
    )


def test_a_terminal_is_enough(folder):
    """A real terminal: a person types, is interrupted, and finds the answers again."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "lifelong", "recommend"]
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    with subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(follower)
        said = b""
        typed = [b"benign, malignant\n", b"y\n", b"3\n", b"\x04"]
        while True:
            try:
                said += os.read(leader, 65536)
            except OSError:
                break
            if said.count(b"\n") and said.rstrip().endswith(b"\x1b[0m") and typed:
                os.write(leader, typed.pop(0))
        assert process.wait() == 1
    os.close(leader)
    assert kept().fingerprint.decision_rule == "argmax"
    assert f"Your answers are in {STATE}" in said.decode()


def test_a_terminal_without_unicode_is_enough_as_well():
    command = [sys.executable, "-m", "lifelong", "recommend", "--classes", "gutartig,bösartig"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, input=b"y\ns\n", env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"How will a score become a decision" in done.stdout
    assert kept().class_names == ("gutartig", "bösartig")


def test_yes_accepts_proposed_costs():
    typed = [*TYPED[:2], "4", "y", "y", "1", "malignant", "10 %", "n", "y"]
    ask(*typed, "y", "s")
    assert kept().fingerprint.costs == ((0, 1), (9, 0))


def test_a_rule_that_is_not_for_eight_classes_is_not_shown():
    said = ask("8", "y", "1", "s").stdout
    assert "reach a target" not in said
    assert kept().fingerprint.decision_rule == "optimization"


def without_a_reader(*arguments: str, typed: str = "") -> None:
    """Run the command with a standard output that nothing reads."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "lifelong", *arguments]
    try:
        subprocess.run(
            command, input=typed.encode(), stdout=writing, stderr=subprocess.DEVNULL, check=False, timeout=60
        )
    finally:
        os.close(writing)


def test_the_file_is_written_even_where_nothing_reads_the_output():
    Path("answers.yaml").write_text(json.dumps(SCREENING))
    without_a_reader("recommend", "--answers", "answers.yaml", "--output", "found.json")
    assert Recommendation.from_json(Path("found.json").read_text()).metrics
    assert read_answers(Path("found.json"), None).fingerprint.number_of_classes == 2


def test_the_file_of_an_interview_is_written_before_its_result_is_printed():
    ask(*TYPED, "")
    ended = kept()
    without_a_reader("recommend", "--output", "found.json", typed="\n")
    assert Recommendation.from_json(Path("found.json").read_text()) == ended.recommendation()


def test_costs_come_from_a_rule_or_an_exported_table():
    answers = {name: value for name, value in SCREENING.items() if name != "costs"}
    script(answers, "--costs", "all 1 but 1 -> 0 = 50", "--output", "found.json")
    assert read_answers(Path("found.json"), None).fingerprint.costs == ((0, 1), (50, 0))
    Path("costs.csv").write_text("\ufeff;benign;malignant\nmalignant;2,5;0\nbenign;0;1\n")
    script(answers, "--classes", "benign,malignant", "--costs", "costs.csv", "--output", "found.json")
    assert read_answers(Path("found.json"), None).fingerprint.costs == ((0, 1), (2.5, 0))
    script({**answers, "costs": "all 2 but 1 -> 0 = 8"}, "--output", "found.json")
    assert read_answers(Path("found.json"), None).fingerprint.costs == ((0, 2), (8, 0))
    with pytest.raises(InvalidInputError, match="--costs: 'wart' is none of the classes"):
        script(answers, "--costs", "all 1 but wart -> 0 = 50")


EIGHT = ("akiec", "bcc", "bkl", "df", "mel", "nv", "vasc", "scc")
UP_TO_COSTS = (", ".join(EIGHT), "y", "highest", "y", "y", "c FP2.5.4.costs")
"""What is typed before the costs of eight classes."""


def table(names, separator="\t"):
    """Costs with names, in which the last class costs more."""
    rows = [["0" if i == j else "1,5" if i == 7 else "1" for j in range(8)] for i in range(8)]
    header = separator.join(["", *names])
    return [header, *(separator.join([name, *row]) for name, row in zip(names, rows, strict=True))]


def expected():
    return tuple(tuple(0.0 if i == j else 1.5 if i == 7 else 1.0 for j in range(8)) for i in range(8))


@pytest.mark.parametrize("separator", "\t;")
def test_a_table_is_pasted_line_by_line(separator):
    said = ask(*UP_TO_COSTS, *table(EIGHT, separator), "n", "s").stdout
    assert kept().fingerprint.costs == expected()
    assert kept().fingerprint.unequal_interest is False  # the line behind the table answers the next question
    assert "scc    1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0" in said
    assert "none of the" not in said


def test_rows_of_numbers_are_typed_line_by_line():
    rows = [" ".join(f"{cost:g}" for cost in row) for row in expected()]
    ask(*UP_TO_COSTS, *rows, "s")
    assert kept().fingerprint.costs == expected()


def test_an_empty_line_ends_a_table():
    said = ask(*UP_TO_COSTS, *table(EIGHT)[:4], "", "linear", "s").stdout
    assert "Expected 8 rows of 8 numbers, got 3 rows" in " ".join(said.split())
    assert "  = linear" in said


def test_a_pasted_table_reaches_a_real_terminal(folder):
    """Tabs and line ends arrive at once, faster than lines are asked for."""
    ask(*UP_TO_COSTS[:-1], "s")
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    command = [sys.executable, "-m", "lifelong", "recommend"]
    with subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        os.close(follower)
        pasted = "".join(f"{line}\n" for line in ("c FP2.5.4.costs", *table(EIGHT), "s")).encode()
        said, is_sent = b"", False
        while True:
            try:
                said += os.read(leader, 65536)
            except OSError:
                break
            if not is_sent and said.rstrip().endswith(b"\x1b[0m"):
                os.write(leader, pasted)
                is_sent = True
        assert process.wait() == 0, said.decode()
    os.close(leader)
    assert kept().fingerprint.costs == expected()


def test_costs_of_many_classes_are_said_as_a_rule():
    said = ask(*UP_TO_COSTS, "all 1 but mel -> nv = 50", "c FP2.5.4.costs", "", "a", "s").stdout
    assert "  = all 1 but mel -> nv = 50" in said
    assert "So far          all 1 but mel -> nv = 50" in said
    assert "Costs of the confusions: all 1 but mel -> nv = 50" in said
    assert "0, 1; 9, 0; or" not in said


def test_yes_ends_at_the_result():
    assert "not understood" not in ask(*TYPED, "y").stdout


def test_the_prompt_says_that_enter_accepts_a_proposal():
    np.savez("data.npz", labels=np.repeat([0, 1], 50), groups=np.arange(100))
    said = ask("", "c FP4.3", "", "s", options=("--data", "data.npz")).stdout
    assert "Enter accepts the proposal: no  |  y/n" in said
    assert kept().fingerprint.dependent_cases is False


def test_costs_that_are_no_file_and_no_rule_are_named() -> None:
    for given in ("nofile.csv", "costs/no file.tsv", "linear.csv", "x" * 300):
        with pytest.raises(InvalidInputError, match="no such file, and no rule") as caught:
            script({name: value for name, value in SCREENING.items() if name != "costs"}, "--costs", given)
        assert caught.value.field == "--costs"
        assert "all 1 but 1 -> 0 = 50" in caught.value.hint


def test_a_rule_may_be_longer_than_a_path():
    answers = {name: value for name, value in SCREENING.items() if name != "costs"}
    rule = f"all 1 but{' ' * 5000}1 -> 0 = 50"
    script(answers, "--costs", rule, "--output", "found.json")
    assert written().fingerprint.costs == ((0, 1), (50, 0))


def test_a_ratio_costs_the_class_that_must_be_found():
    ratio = {**SCREENING, "costs": "50:1", "target_class": "ill", "class_names": ["ill", "healthy"]}
    script(ratio, "--output", "found.json")
    assert written().fingerprint.costs == ((0, 50), (1, 0))


def test_a_wrong_answer_in_a_file_is_told_the_values_that_fit():
    with pytest.raises(InvalidInputError, match=r"answers\.yaml: 'majority' is none") as caught:
        script({"number_of_classes": 8, "FP2.6": "majority"})
    assert "optimization (best value of a metric), argmax (highest score wins)" in caught.value.hint
    assert "target_value" not in caught.value.hint


def test_thresholds_stay_with_the_same_recommendation(installed):
    """The hint of the command itself says to attach once more with --refit-head."""
    installed("tasks", "add", "lesions", "--classes", "benign,malignant")
    Path("answers.yaml").write_text(json.dumps({**SCREENING, "target_class": "malignant"}))
    arguments = ("recommend", "--answers", "answers.yaml", "--attach", "lesions")
    installed(*arguments, "--threshold", "TNR@(TPR=0.95)=0.4", "--threshold", "AP=0.5")
    said = installed(*arguments)
    assert "Recommendation 2 is attached to lesions with 2 thresholds." in said
    assert "the same recommendation as version 1, so its 2 acceptance thresholds stay in force" in said
    labels = np.arange(40) % 2
    with open_store() as store:
        store.models.add("lesions", "skin", kind="external", actor="test")
        register_calibration(store, "skin", LabeledLogits(2 * np.eye(2)[labels], labels), actor="test")
    assert "stay in force" in installed(*arguments, "--refit-head")
    with open_store() as store:
        assert [item.metric for item in store.recommendations.current("lesions").thresholds] == [
            "TNR@(TPR=0.95)",
            "AP",
        ]
    Path("answers.yaml").write_text(json.dumps({**SCREENING, "target_class": 1, "costs": "30:1"}))
    said = installed(*arguments)
    assert "2 acceptance thresholds of version 3 are no longer in force: state them with --threshold." in said
    assert "no longer" not in installed(*arguments)
    with open_store() as store:
        assert store.recommendations.current("lesions").thresholds == ()
