"""The command line against a real SQLite store, as a user types it."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import onnx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner
from onnx import TensorProto, helper

from lifelong.cli import cli
from lifelong.commands.common import open_store
from lifelong_core.configuration.serving_plan import plan_serving, worker_memory
from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import QUANTIFIERS, LabeledLogits, PostProcessingHead, TargetValue
from lifelong_core.images.preprocessing_digest import preprocessing_digest
from lifelong_core.runtime.cores import usable_cores
from lifelong_core.store import Cycle, Heartbeat, Tick, new_prediction_id
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import LifelongError
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.service.onnx_graphs import linear


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run one command line in an empty folder; errors of the product are raised as they are."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(cli, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    return run


def write_graph(folder: Path) -> Path:
    """A graph that gives the mean of each of three channels as logits."""
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["n", 3, None, None])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", 3])
    nodes = [
        helper.make_node("GlobalAveragePool", ["image"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["logits"]),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "means", [image], [logits]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=9,
    )
    onnx.checker.check_model(model)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def write_calibration(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    path = folder / "calibration.npz"
    path.write_bytes(LabeledLogits(2 * np.eye(3)[labels] + rng.normal(size=(300, 3)), labels).to_bytes())
    return path


@pytest.fixture
def graph(tmp_path):
    return write_graph(tmp_path)


@pytest.fixture
def calibration(tmp_path):
    return write_calibration(tmp_path)


@pytest.fixture(scope="session")
def served_once(made_once, tmp_path_factory):
    """The data directory of an installation with one calibrated model."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(made_once, folder / "lifelong-data")
    add = ("models", "add", "net", "--task", "triage", "--onnx", str(write_graph(folder)))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for arguments in (
            ("tasks", "add", "triage", "--classes", "a, b,c", "--costs", "[[0,1,1],[1,0,1],[2,2,0]]"),
            (*add, "--calibration", str(write_calibration(folder))),
        ):
            assert CliRunner().invoke(cli, arguments, catch_exceptions=False).exit_code == 0
    return folder / "lifelong-data"


@pytest.fixture
def served(served_once, tmp_path):
    """A copy of it in the folder of `run`."""
    shutil.copytree(served_once, tmp_path / "lifelong-data")


def test_init_prints_one_token_and_only_the_first_time(run):
    secret = run("init").strip()
    assert secret.startswith("ll_")
    assert "ll_" not in run("init")
    tokens = json.loads(run("tokens", "list", "--json"))
    assert [(token["name"], token["scopes"]) for token in tokens] == [("first-admin", "admin")]


def initialise(*arguments: str) -> str:
    """What people are told, beside the token."""
    return CliRunner().invoke(cli, ["init", *arguments], catch_exceptions=False).stderr


def test_init_says_which_mode_is_in_force(run, tmp_path, monkeypatch):
    assert "Mode: auto (cycles swap heads)." in initialise()
    assert not (tmp_path / "lifelong.toml").exists()
    assert "Mode: shadow (cycles only report)." in initialise("--mode", "shadow")
    assert (tmp_path / "lifelong.toml").read_text() == '[policy]\nmode = "shadow"\n'
    assert "Mode: shadow" in initialise("--mode", "shadow")
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES", '{"clinic": {"mode": "auto"}}')
    assert "Mode: shadow (cycles only report), but clinic: auto." in initialise()


@pytest.mark.parametrize("before", ["# ours\nworkers = 4", "# ours\nworkers = 4\n"])
def test_a_mode_is_added_to_a_file_without_touching_its_lines(run, tmp_path, before):
    file = tmp_path / "lifelong.toml"
    file.write_text(before)
    assert "Mode: propose" in initialise("--mode", "propose")
    assert file.read_text() == '# ours\nworkers = 4\n\n[policy]\nmode = "propose"\n'


def test_a_file_with_a_policy_is_left_alone_and_the_line_is_told(run, tmp_path) -> None:
    file = tmp_path / "lifelong.toml"
    for policy in (
        "[policy]\nminimum_gain = 0.01  # agreed\n",
        'policy.mode = "auto"\n',
        '[policy]\nmode = "propose"',
    ):
        file.write_text(policy)
        with pytest.raises(LifelongError, match=r'mode = "shadow" under \[policy\]'):
            run("init", "--mode", "shadow")
        assert file.read_text() == policy


def test_a_variable_that_overrides_the_mode_is_told(run, monkeypatch):
    monkeypatch.setenv("LIFELONG_POLICY__MODE", "auto")
    with pytest.raises(LifelongError, match="a variable sets auto"):
        run("init", "--mode", "shadow")


def test_a_folder_that_takes_no_settings_file(run, tmp_path):
    (tmp_path / "lifelong.toml").mkdir()
    with pytest.raises(LifelongError, match="cannot be read: Is a directory"):
        run("init", "--mode", "shadow")


def test_monitors(run, served):
    assert "No monitor runs" in run("monitors")
    at = datetime.now(UTC)
    tick = Tick(at, at, at, None)
    with open_store() as store:
        ticks = (None, tick, replace(tick, finished_at=None), replace(tick, problem="gone."))
        for number, one in enumerate(ticks):
            beat = Heartbeat(
                f"m{number}",
                "ward-3",
                7,
                at,
                60.0,
                "shadow",
                {"clinic": "auto"},
                one,
                (),
                settings={"a": number},
            )
            store.monitors.record_heartbeat(beat)
    states = [row["state"] for row in json.loads(run("monitors", "--json"))]
    assert sorted(states) == ["failing", "in a tick", "starting", "waiting"]
    rows = json.loads(run("monitors", "--json"))
    assert {row["mode"] for row in rows} == {"shadow, clinic: auto"}
    assert len({row["settings"] for row in rows}) == 4
    assert "ward-3" in run("monitors")
    with open_store() as store, store.database.write() as connection:
        connection.execute(sa.update(tables.monitors).values(seen_at=at - timedelta(minutes=2)))
    assert {row["state"] for row in json.loads(run("monitors", "--json"))} == {"lost"}


def test_a_model_is_served_after_three_commands(run, served):
    models = json.loads(run("models", "list", "--json"))
    assert models == [
        {"model": "net@1", "task": "triage", "kind": "onnx", "calibrated": True, "promoted": True}
    ]
    heads = json.loads(run("heads", "list", "net", "--json"))
    assert [(head["version"], head["active_in"]) for head in heads] == [(1, "(default head)")]


def test_the_head_uses_the_costs_of_the_task(run, served):
    head = PostProcessingHead.from_json(run("heads", "show", "net", "1"))
    assert head.costs.tolist() == [[0, 1, 1], [1, 0, 1], [2, 2, 0]]
    assert head.class_names == ("a", "b", "c")


def test_a_task_takes_a_decision_rule(run):
    run("init")
    rule = '{"kind": "target_value", "metric": "PPV", "value": 0.8}'
    run("tasks", "add", "triage", "--classes", "a,b", "--decision-rule", rule)
    run("tasks", "add", "simple", "--classes", "a,b", "--decision-rule", "argmax")
    found = [one["decision_rule"] for one in json.loads(run("tasks", "list", "--json"))]
    assert found == ["precision of b at least 0.8, then the best sensitivity", "highest probability"]
    with pytest.raises(LifelongError, match="there is no class 2") as caught:
        run("tasks", "add", "x", "--classes", "a,b", "--decision-rule", rule[:-1] + ', "positive_class": 2}')
    assert caught.value.field == "decision_rule.positive_class"


def test_a_model_in_half_precision_is_stored_converted_and_calibrated_with_images_only(
    run, graph, calibration
):
    without_weights = ("models", "add", "net", "--task", "triage", "--onnx", str(graph), "--half")
    run("init")
    run("tasks", "add", "triage", "--classes", "a,b,c")
    with pytest.raises(LifelongError, match="no float32 weights") as caught:
        run(*without_weights)
    assert caught.value.field == "--half"
    graph.write_bytes(linear(channels=3))
    add = ("models", "add", "net", "--task", "triage", "--onnx", str(graph), "--half")
    with pytest.raises(LifelongError, match="before its conversion") as caught:
        run(*add, "--calibration", str(calibration))
    assert caught.value.field == "--half"
    with pytest.raises(LifelongError, match="no graph to convert"):
        run("models", "add", "far", "--task", "triage", "--external", "--half")
    assert "with CPUExecutionProvider, no logit changed by more than" in run(*add)
    with open_store() as store:
        artifact = store.models.get("net").artifact
        stored = store.artifacts.path(artifact).read_bytes()
    kinds = {tensor.data_type for tensor in onnx.load_from_string(stored).graph.initializer}
    assert kinds == {onnx.TensorProto.FLOAT16}


def test_a_graph_that_cannot_be_served_is_refused_at_once(run, graph):
    run("init")
    run("tasks", "add", "four", "--classes", "a,b,c,d")
    with pytest.raises(LifelongError, match="one logit per class") as caught:
        run("models", "add", "net", "--task", "four", "--onnx", str(graph))
    assert caught.value.field == "--onnx"
    assert json.loads(run("models", "list", "--json")) == []


def test_a_model_that_nothing_uses_is_removed(run, served):
    run("models", "add", "spare", "--task", "triage", "--external")
    with pytest.raises(LifelongError, match="names no version"):
        run("models", "remove", "spare")
    assert run("models", "remove", "spare@1") == "Removed spare@1. Its version is not used again.\n"
    with pytest.raises(LifelongError, match="the task triage serves it"):
        run("models", "remove", "net@1")
    assert [model["model"] for model in json.loads(run("models", "list", "--json"))] == ["net@1"]


def test_publish_and_roll_back(run, served, tmp_path):
    (tmp_path / "head.json").write_text(run("heads", "show", "net", "1"))
    assert "head 2" in run("heads", "publish", "net", str(tmp_path / "head.json"))
    assert run("heads", "rollback", "net") == (
        "Head 1 is active again as the default head.\n"
        "Its calibration set 1 is the active one of net@1: cycles fit heads on it.\n"
        "Default head: used in 'default' and every new environment. It is not pinned, but no monitor is running"
        " that could replace it now.\n"
    )


def test_a_rollback_pins_the_head_in_the_same_step(run, served, tmp_path):
    (tmp_path / "head.json").write_text(run("heads", "show", "net", "1"))
    run("heads", "publish", "net", str(tmp_path / "head.json"), "--environment", "default")
    said = run("heads", "rollback", "net", "--environment", "default", "--pin", "wrong since Monday")
    assert "('wrong since Monday'): no cycle replaces it." in said
    (row,) = [one for one in json.loads(run("heads", "list", "net", "--json")) if one["pinned_in"]]
    assert (row["version"], row["pinned_in"]) == (1, "default: wrong since Monday")


def test_a_calibration_set_is_withdrawn(run, served):
    from lifelong.commands.common import open_store
    from lifelong_core.deploy import LabeledLogits

    with open_store() as store:
        old = store.calibration_sets.load(1)
        new = LabeledLogits(old.logits + 0.125, old.labels)
        store.calibration_sets.add("net", new, actor="tests")
    assert [row["active"] for row in json.loads(run("calibration-sets", "list", "net", "--json"))] == [
        False,
        True,
    ]
    assert run("calibration-sets", "activate", "net", "1") == (
        "Calibration set 1 of net@1 is active: cycles fit heads on it.\nDefault head 1 was fitted on this set.\n"
    )
    assert "fitted on set 1 and goes on" in run("calibration-sets", "activate", "net", "2")
    at_risk = run("heads", "rollback", "net", "--environment", "default", "--to", "1")
    assert "`lifelong calibration-sets activate net@1 1`" in at_risk
    with pytest.raises(LifelongError, match="no calibration set 9"):
        run("calibration-sets", "activate", "net", "9")


def test_roll_back_to_a_stated_version_of_one_place(run, served, tmp_path):
    file, site = tmp_path / "head.json", ("--environment", "site-a")
    file.write_text(run("heads", "show", "net", "1"))
    for _ in range(2):
        run("heads", "publish", "net", str(file), *site)
    run("heads", "pin", "net", *site, "--reason", "under audit")
    said = run("heads", "rollback", "net", *site, "--to", "1")
    assert said.startswith("Head 1 is active again in site-a.\nIt is pinned by cli:")
    assert said.endswith("('under audit'): no cycle replaces it.\n")
    newest, *_ = json.loads(run("heads", "history", "net", *site, "--json"))
    assert (newest["version"], newest["reason"], newest["follows_default"]) == (1, "rollback", False)


def test_an_unset_variable_does_not_name_the_default_head(run, served, tmp_path) -> None:
    file = tmp_path / "head.json"
    file.write_text(run("heads", "show", "net", "1"))
    for command in ("rollback", "publish", "pin", "unpin", "history"):
        further = {"publish": [str(file)], "pin": ["--reason", "why"]}.get(command, [])
        with pytest.raises(LifelongError, match="the name is empty") as refused:
            run("heads", command, "net", *further, "--environment", "")
        assert refused.value.field == "--environment"
        (only,) = json.loads(run("heads", "list", "net", "--json"))
        assert (only["active_in"], only["pinned_in"]) == ("(default head)", "")


def test_nothing_is_changed_that_changed_since_one_looked(run, served, tmp_path):
    file = tmp_path / "head.json"
    file.write_text(run("heads", "show", "net", "1"))
    (first,) = json.loads(run("heads", "history", "net", "--json"))
    assert (first["sequence"], first["version"], first["reason"]) == (1, 1, "publish")
    seen = ("--expected-sequence", "1")
    assert "head 2" in run("heads", "publish", "net", str(file), *seen)
    for command in (
        ("publish", "net", str(file)),
        ("rollback", "net"),
        ("pin", "net", "--reason", "held"),
        ("unpin", "net"),
    ):
        with pytest.raises(LifelongError, match="changed meanwhile"):
            run("heads", *command, *seen)
    seen = ("--expected-sequence", "2")
    run("heads", "pin", "net", "--reason", "held", *seen)
    run("heads", "unpin", "net", *seen)
    assert "Head 1" in run("heads", "rollback", "net", *seen)
    history = json.loads(run("heads", "history", "net", "--json"))
    assert [(one["sequence"], one["reason"]) for one in history] == [
        (3, "rollback"),
        (2, "publish"),
        (1, "publish"),
    ]
    assert "sequence 0" in run("heads", "history", "net", "--environment", "site-a")


def test_only_the_head_that_is_meant_is_published(run, served, tmp_path):
    file = tmp_path / "head.json"
    file.write_text(run("heads", "show", "net", "1"))
    with pytest.raises(LifelongError, match="digest"):
        run("heads", "publish", "net", str(file), "--digest", "0" * 64)
    digest = PostProcessingHead.from_json(file.read_text()).digest
    assert "head 2" in run("heads", "publish", "net", str(file), "--digest", digest)


def test_workers_and_the_heads_that_they_run(run, served, tmp_path):
    assert "No worker" in run("heads", "workers")
    (head,) = json.loads(run("heads", "list", "net", "--json"))
    assert head["workers"] == "0/0"
    with open_store() as store:
        model = store.models.get("net").id

        def acknowledge(worker: str, version: int) -> None:
            store.workers.record_heartbeat(
                worker,
                host="ward-3",
                process=4711,
                started_at=datetime.now(UTC),
                revision=store.revision(),
                heads={(model, None): version},
                models={},
            )

        acknowledge("one", 1)
        (tmp_path / "head.json").write_text(run("heads", "show", "net", "1"))
        run("heads", "publish", "net", str(tmp_path / "head.json"))
        acknowledge("two", 2)
    assert [head["workers"] for head in json.loads(run("heads", "list", "net", "--json"))] == ["", "1/2"]
    workers = json.loads(run("heads", "workers", "--json"))
    assert [(worker["state"], worker["heads"]) for worker in workers] == [
        ("up to date", "net@1 (default head): 2"),
        ("behind", "net@1 (default head): 1"),
    ]
    assert "ward-3" in run("heads", "workers")
    with open_store() as store, store.database.write() as connection:
        long_ago = datetime.now(UTC) - timedelta(minutes=2)
        connection.execute(sa.update(tables.workers).values(seen_at=long_ago))
    assert [worker["state"] for worker in json.loads(run("heads", "workers", "--json"))] == ["lost", "lost"]
    assert json.loads(run("heads", "list", "net", "--json"))[1]["workers"] == "0/0"


def test_a_damaged_head_is_told_apart_and_the_others_are_listed(run, served, tmp_path):
    (tmp_path / "head.json").write_text(run("heads", "show", "net", "1"))
    run("heads", "publish", "net", str(tmp_path / "head.json"))
    run("heads", "pin", "net", "--reason", "held")
    with open_store() as store, store.database.write() as connection:
        connection.execute(sa.update(tables.heads).where(tables.heads.c.version == 2).values(document="{"))
    listed = CliRunner().invoke(cli, ["heads", "list", "net", "--json"])
    assert [(head["version"], head["active_in"]) for head in json.loads(listed.stdout)] == [(1, "")]
    assert listed.stderr.count("Warning: head 2 is damaged") == 1
    with pytest.raises(LifelongError, match="head 2 is damaged"):
        run("heads", "show", "net", "2")
    assert "Head 1" in run("heads", "rollback", "net")


def test_pin_and_unpin(run, served):
    with open_store() as store:
        store.environments.ensure("site-a", limit=9)
    run("heads", "pin", "net", "--reason", "frozen for the study")
    assert "head in site-a" in run(
        "heads", "pin", "net", "--environment", "site-a", "--reason", "under audit"
    )
    (head,) = json.loads(run("heads", "list", "net", "--json"))
    assert head["pinned_in"] == "(default head): frozen for the study; site-a: under audit"
    with pytest.raises(LifelongError, match="under audit"):
        run("heads", "pin", "net", "--environment", "site-a", "--reason", "me too")
    run("heads", "unpin", "net")
    (head,) = json.loads(run("heads", "list", "net", "--json"))
    assert head["pinned_in"] == "site-a: under audit"


def test_a_pin_on_a_misspelt_environment_is_not_confirmed(run, served):
    for arguments in (("pin", "--reason", "frozen"), ("unpin",)):
        command, *options = arguments
        with pytest.raises(LifelongError, match=r"no environment 'nowhere'; known are default\."):
            run("heads", command, "net", "--environment", "nowhere", *options)
    (head,) = json.loads(run("heads", "list", "net", "--json"))
    assert head["pinned_in"] == ""


def test_what_a_cycle_proposes_is_listed_and_approved(run, served):
    assert run("heads", "proposals") == "Nothing is proposed.\n"
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    with open_store() as store:
        candidate = store.heads.get("net", 1).head
        rule = TargetValue("PPV", 0.8, 2)
        candidate = replace(candidate, assumed_prevalence=[0.5, 0.3, 0.2], decision_rule=rule, cut_off=0.625)
        reasons = [
            {
                "code": "prevalence_shifted",
                "text": "The prevalence of [b] has shifted, " + 9 * "as it seems, ",
            },
            {"code": "gain_sufficient", "text": "It pays."},
        ]
        cycle = Cycle(
            id=new_prediction_id(),
            model_id=store.models.get("net").id,
            environment="site-a",
            due_at=noon,
            started_at=noon,
            finished_at=noon,
            outcome="swap",
            report={"reasons": reasons},
            window_samples=500,
            log_position=17,
            head_version=1,
            published_version=None,
        )
        store.cycles.finish(cycle, candidate=candidate, expected_sequence=0, mode="propose")
    (proposal,) = json.loads(run("heads", "proposals", "--model", "net", "--json"))
    assert (proposal["cycle"], proposal["environment"], proposal["replaces"]) == (str(cycle.id), "site-a", 1)
    assert [reason["code"] for reason in proposal["reasons"]] == ["prevalence_shifted", "gain_sufficient"]
    assert proposal["assumed_prevalence"][1] == {"class": "b", "now": pytest.approx(1 / 3), "proposed": 0.3}
    assert proposal["cut_off"] == {"now": None, "proposed": 0.625}
    lines = run("heads", "proposals").splitlines()
    assert "  decision rule: precision of c at least 0.8, then the best sensitivity" in lines
    assert "  cut-off: none -> 0.625" in lines
    assert lines[0] == str(cycle.id)
    assert "  model: net@1" in lines
    assert "  environment: site-a" in lines
    assert "    a: 0.333 -> 0.500" in lines
    assert [line.strip() for line in lines[-2:]] == [reason["text"].strip() for reason in reasons]
    assert run("heads", "approve", proposal["cycle"]) == "Published head 2 in site-a.\n"
    assert json.loads(run("heads", "proposals", "--json")) == []
    with pytest.raises(LifelongError, match="approved already"):
        run("heads", "approve", proposal["cycle"])


def test_settings_keep_their_names_whole_and_their_brackets(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LIFELONG_ENVIRONMENT_POLICIES", '{"site-a": {"mode": "shadow"}}')
    lines = run("settings").splitlines()
    assert max(len(line) for line in lines) <= 80
    names = [line.split()[0] for line in lines if line.strip().startswith("LIFELONG_")]
    assert names == [setting["variable"] for setting in json.loads(run("settings", "--json"))]
    assert "LIFELONG_POLICY__AVERAGE_RUN_LENGTH" in names
    monkeypatch.setenv("COLUMNS", "200")
    assert '[environment_policies."hospital-a"]' in run("settings")


def test_settings_that_are_left_open_show_what_is_chosen(run, monkeypatch):
    def shown() -> list[object]:
        values = {one["variable"]: one["value"] for one in json.loads(run("settings", "--json"))}
        names = ("WORKERS", "INTRA_OP_THREADS", "MAXIMUM_WORKER_MEMORY_BYTES", "JOB_MEMORY_BYTES")
        return [values[f"LIFELONG_{name}"] for name in names]

    plan = plan_serving(usable_cores())
    memory = [worker_memory(Settings(), plan), Settings().resolved_job_memory_bytes]
    assert shown() == [f"{value} (chosen)" for value in (plan.workers, plan.threads, *memory)]
    monkeypatch.setenv("LIFELONG_WORKERS", "3")
    monkeypatch.setenv("LIFELONG_INTRA_OP_THREADS", "2")
    monkeypatch.setenv("LIFELONG_MAXIMUM_WORKER_MEMORY_BYTES", "3000000000")
    monkeypatch.setenv("LIFELONG_JOB_MEMORY_BYTES", "4000000000")
    assert shown() == [3, 2, 3000000000, 4000000000]


def test_the_setting_names_every_quantifier():
    meaning = Settings.model_fields["quantifier"].description
    assert meaning is not None
    assert f": {', '.join(QUANTIFIERS)} (" in meaning


def test_an_external_model_needs_no_graph(run, served, calibration):
    run("models", "add", "triton", "--task", "triage", "--external", "--calibration", str(calibration))
    kinds = {model["model"]: model["kind"] for model in json.loads(run("models", "list", "--json"))}
    assert kinds == {"net@1": "onnx", "triton@1": "external"}
    run("models", "promote", "triton@1")
    promoted = [model["model"] for model in json.loads(run("models", "list", "--json")) if model["promoted"]]
    assert promoted == ["triton@1"]


def test_a_token_is_bound_expires_and_is_rotated(run):
    run("init")
    secret = run(
        "tokens", "create", "site", "--scope", "predict", "--environment", "clinic-a", "--expires-in", "90d"
    ).strip()
    with open_store() as store:
        assert store.tokens.verify(secret) is not None
    (token,) = [one for one in json.loads(run("tokens", "list", "--json")) if one["name"] == "site"]
    assert token["environments"] == "clinic-a"
    assert token["last_used_at"] is None
    lifetime = datetime.fromisoformat(token["expires_at"]) - datetime.now(UTC)
    assert timedelta(days=89, hours=23) < lifetime <= timedelta(days=90)
    rotated = run("tokens", "rotate", "site", "--overlap", "0s", "--expires-at", "2099-01-31").strip()
    with open_store() as store:
        assert store.tokens.verify(secret) is None
        found = store.tokens.verify(rotated)
        assert found.environments == {"clinic-a"}
        assert found.expires_at.year == 2099


@pytest.mark.parametrize("arguments", [("--expires-in", "soon"), ("--expires-at", "soon")])
def test_a_time_that_is_none_is_a_usage_error(arguments):
    result = CliRunner().invoke(cli, ("tokens", "create", "x", "--scope", "read", *arguments))
    assert (result.exit_code, "'soon'" in result.output) == (2, True)


def test_environments_are_added_disabled_and_deleted(run):
    run("init")
    run("environments", "add", "clinic-a")
    run("environments", "disable", "clinic-a")
    listed = {one["name"]: one for one in json.loads(run("environments", "list", "--json"))}
    assert listed["clinic-a"]["disabled_at"] is not None
    assert listed["clinic-a"]["created_by"].startswith("cli:")
    run("environments", "enable", "clinic-a")
    run("environments", "delete", "clinic-a")
    assert [one["name"] for one in json.loads(run("environments", "list", "--json"))] == ["default"]
    assert [one["action"] for one in json.loads(run("audit", "--json"))][:4] == [
        f"environments.{verb}" for verb in ("delete", "enable", "disable", "create")
    ]


def test_tokens_are_created_and_revoked(run, served):
    assert run("tokens", "create", "gateway", "--scope", "predict", "--scope", "feedback").startswith("ll_")
    run("tokens", "revoke", "gateway")
    tokens = {token["name"]: token for token in json.loads(run("tokens", "list", "--json"))}
    assert tokens["gateway"]["revoked_at"] is not None
    assert tokens["first-admin"]["revoked_at"] is None


def test_a_mistake_names_the_option(run, served) -> None:
    for arguments, field in (
        (("models", "add", "net", "--task", "triage"), "--onnx"),
        (("tasks", "add", "Bad Name", "--classes", "a,b"), "NAME"),
        (("tasks", "add", "x", "--classes", "a,b", "--costs", "nowhere.json"), "--costs"),
        (("tasks", "add", "x", "--classes", "a,b", "--costs", "[[0, 1]]"), "costs"),
        (("heads", "list", "nowhere"), "model"),
    ):
        with pytest.raises(LifelongError) as caught:
            run(*arguments)
        assert caught.value.field == field


def test_an_installation_that_was_never_made_says_how_to_make_it(run):
    with pytest.raises(LifelongError, match="lifelong init"):
        run("tasks", "list")


def test_errors_end_as_one_line_and_exit_code_1(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "lifelong", "tasks", "list"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_help_names_every_command(run):
    listed = run("--help")
    assert [name for name in cli.commands if name not in listed] == []


def test_a_wrong_preprocessing_document_is_told_in_plain_words(run, tmp_path):
    file = tmp_path / "preprocessing.json"
    file.write_text('{"colour": "rbg", "reszie": {"height": 3}}')
    told = r"reszie: there is no such field \(and 1 more problem\)\. Did you mean resize\?"
    with pytest.raises(LifelongError, match=told):
        run("models", "add", "net", "--task", "t", "--onnx", str(file), "--preprocessing", str(file))


def test_a_refused_calibration_set_adds_no_model_unless_a_reason_forces_it(run, calibration, tmp_path):
    run("init")
    run("tasks", "add", "triage", "--classes", "a,b,c")
    data = LabeledLogits.from_bytes(calibration.read_bytes())
    swapped = tmp_path / "swapped.npz"
    swapped.write_bytes(LabeledLogits(data.logits, np.array([1, 0, 2])[data.labels]).to_bytes())
    add = ("models", "add", "net", "--task", "triage", "--external", "--calibration", str(swapped))
    refused = CliRunner().invoke(cli, add)
    assert refused.exit_code == 1
    assert refused.stderr.startswith("Refused: the labels of a and b look swapped: ")
    assert "Forced" not in refused.output
    assert json.loads(run("models", "list", "--json")) == []
    said = run(*add, "--force-because", "a test")
    assert "Fitted head 1" in said
    assert "Forced: the labels of a and b look swapped: " in said
    assert max(map(len, said.partition("All figures")[0].splitlines())) <= 80
    with open_store() as store:
        (entry,) = [one for one in store.audit.list() if one.action == "calibration_sets.add"]
    assert entry.details["force_reason"] == "a test"


def test_a_calibration_set_of_another_preprocessing_adds_no_model(run, graph, calibration):
    run("init")
    run("tasks", "add", "triage", "--classes", "a,b,c")
    data = LabeledLogits.from_bytes(calibration.read_bytes())
    add = (
        "models",
        "add",
        "net",
        "--task",
        "triage",
        "--onnx",
        str(graph),
        "--calibration",
        str(calibration),
    )
    calibration.write_bytes(replace(data, preprocessing_digest="ab" * 32).to_bytes())
    with pytest.raises(LifelongError, match="another preprocessing") as caught:
        run(*add, "--force-because", "a test")
    assert caught.value.field == "preprocessing_digest"
    assert json.loads(run("models", "list", "--json")) == []
    own = preprocessing_digest(Preprocessing())
    calibration.write_bytes(replace(data, preprocessing_digest=own).to_bytes())
    assert "Fitted head 1" in run(*add)
    with open_store() as store:
        store.calibration_sets.add("net", data, actor="tests")
        store.calibration_sets.add("net", replace(data, preprocessing_digest="ab" * 32), actor="tests")
    listed = json.loads(run("calibration-sets", "list", "net", "--json"))
    assert [row["preprocessing"] for row in listed] == ["same", "unknown", "other"]
    run("calibration-sets", "activate", "net", "1")
    with pytest.raises(LifelongError, match="another preprocessing") as caught:
        run("calibration-sets", "activate", "net", "3")
    assert caught.value.field == "calibration_set"


def test_probabilities_are_no_logits(run, calibration, tmp_path):
    data = LabeledLogits.from_bytes(calibration.read_bytes())
    shares = np.exp(data.logits) / np.exp(data.logits).sum(axis=1, keepdims=True)
    (tmp_path / "shares.npz").write_bytes(LabeledLogits(shares, data.labels).to_bytes())
    np.save(tmp_path / "shares.npy", shares)
    np.save(tmp_path / "window.npy", data.logits)
    for files in (("shares.npz", "window.npy"), (str(calibration), "shares.npy")):
        with pytest.raises(LifelongError, match=r"shares.*got probabilities"):
            run("adapt", *files)


def test_sessions_of_the_console_are_listed_and_ended(run):
    run("init")
    secret = run("tokens", "create", "ann", "--scope", "read").strip()
    with open_store() as store:
        for address in ("10.0.0.1", "10.0.0.2"):
            session = store.console_sessions.begin(
                secret, address=address, idle=timedelta(hours=1), lifetime=timedelta(hours=2)
            )
    listed = json.loads(run("tokens", "sessions", "ann", "--json"))
    assert [(one["token"], one["address"]) for one in listed] == [("ann", "10.0.0.2"), ("ann", "10.0.0.1")]
    assert json.loads(run("tokens", "sessions", "bob", "--json")) == []
    assert session not in run("tokens", "sessions")
    assert run("tokens", "log-out", "ann") == "Ended 2 sessions of ann.\n"
    assert run("tokens", "sessions") == "Nobody is logged in to the console.\n"
    with open_store() as store:
        assert store.tokens.verify(secret) is not None


def test_the_start_imports_nothing_heavy():
    heavy = ("numpy", "scipy", "sqlalchemy", "bentoml", "fastapi", "onnx", "PIL", "pydantic")
    code = f"import sys, lifelong.cli; print(sorted(set({heavy}) & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "[]\n"
