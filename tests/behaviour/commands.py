"""The command lines that are recorded, on the store that `tour` has filled; their working folder has its files."""

import json
import os
from pathlib import Path

from tests.behaviour import inputs
from tests.behaviour.processes import until
from tests.behaviour.recording import Api, CommandLine

LISTS = """
audit verify, environments list, heads proposals, heads workers, models list, notifications list,
proposals list, settings, tasks list, tokens list, tokens sessions, jobs list,
jobs list --kind validate --state succeeded --limit 2, knowledge list,
knowledge list --limit 1, knowledge signers, knowledge show skin, knowledge show absent, cycles list,
cycles list --model remote --environment shifted --outcome swap --limit 1, calibration-sets list remote@1,
feedback plans, heads list linear@1, heads list remote@1, heads history linear@1 --environment site-a,
models promotions skin, models training linear@1, models training net@1, models trial skin,
models trainings, models validations, populations list --order name, performance, performance remote@1 balanced,
performance remote@1 shifted, performance remote@1 nowhere,
neighbours skin --scenario pretraining, doctor --quick
"""
"""Commands that read the store; each is recorded as text and with `--json`."""
FILES = (
    "adapt calibration.npz same.npy",
    "adapt calibration.npz shifted.npy --classes benign,unclear,malignant --metric BA --output new.json",
    "adapt calibration.npz shifted.npy --decision-rule argmax --order time",
    "plan calibration.npz --prevalence 0.8,0.1,0.1",
    "plan calibration.npz --half-width 0.05",
    "plan --classes 2 --accuracy 0.9 --half-width 0.03",
    "estimate-dice segmented maps --replicates 20",
    "stability a=maps-a.npy b=maps-b.npy",
    "validate good.npz poor.npz --replicates 100 --task skin",
    "validate good.npz --recommendation found.json --replicates 100 --html report.html --output result.json",
    "fingerprint show manual.npz",
    "fingerprint extractor show manual.npz",
)
"""Commands that read files; each is recorded as text and with `--json`."""


def read(run: CommandLine, api: Api) -> None:
    """Record commands that change nothing."""
    answers = Path("answers.yaml")
    answers.write_text(json.dumps({"class_names": inputs.CLASSES, "answers": inputs.ANSWERS}))
    run("recommend --answers answers.yaml --output found.json")
    run("recommend --answers answers.yaml --json")
    run("recommend --restart --classes benign,malignant", given="y\nreach\nsens\nmalignant\n95 %\n")
    run("fingerprint make --method Manual --keyword polyp --keyword colon --output manual.npz")
    for line in (*LISTS.replace("\n", " ").split(", "), *FILES):
        run.both(line)
    run("heads show linear@1 1")
    run("models training net@1 --recipe recipe.json")
    run("fingerprint compare manual.npz manual.npz --method Manual")
    run("models preprocessing timm.json")
    for cycle in api.peek("cycles")["cycles"]:
        run.both(f"cycles show {cycle['id']}")
        if cycle["outcome"] == "swap":
            run.both(f"cycles affected {cycle['id']} --limit 3")
    run("cycles affected absent")
    for job in api.peek("jobs?limit=100")["jobs"]:
        if job["state"] not in ("queued", "running"):
            run.both(f"jobs show {job['id']}")
            run(f"jobs follow {job['id']}")
    for proposal in api.peek("proposals")["proposals"]:
        run.both(f"proposals show {proposal['id']}")
    for plan in api.peek("labelling-plans")["plans"]:
        run.both(f"feedback plans {plan['id']}")
    show(run, Path("new.json"), Path("report.html"), Path("result.json"), Path("recipe.json"))


def monitored(run: CommandLine, api: Api) -> None:
    """Record commands that wait for a job; a monitor runs."""
    run.both("models validate linear@1 --data good.npz --replicates 100 --html validation.html")
    run("models report linear@2 --against linear@1 --data pairs.npz --replicates 100 --html promotion.html")
    run("feedback advise remote@1 balanced --size 10 --output plan.csv --json")
    run("cycles run remote@1 shifted --json")
    swap, refusal = (
        api.peek(f"cycles?environment={name}")["cycles"][0]["id"] for name in ("proposed-a", "broken-1")
    )
    run(f"cycles replay {swap}")
    run(f"cycles replay {refusal} --json")
    run("knowledge refit")
    until(lambda: not api.peek("jobs?kind=rank&state=queued")["jobs"], "the ranking")
    until(lambda: not api.peek("jobs?kind=rank&state=running")["jobs"], "the ranking")
    run.both("retrain skin --data images --model net --detach")
    run.both("search-augmentation skin --data images --trials 2 --detach")
    show(run, Path("validation.html"), Path("promotion.html"), Path("plan.csv"))


def change(run: CommandLine, api: Api, secret: str) -> None:
    """Record commands that change the store."""
    os.environ["LIFELONG_TOKEN"] = secret
    Path("costs.json").write_text(json.dumps([[0, 1], [7, 0]]))
    Path("preprocessing.json").write_text(json.dumps(inputs.GREY))
    run("tasks add polyps --classes no,yes --costs costs.json")
    run("tasks add polyps --classes no --costs costs.json")
    files = "--onnx model.onnx --preprocessing preprocessing.json --calibration calibration.npz"
    run(f"models add second --task skin {files}")
    run("models add far --task skin --external")
    run("calibrate far remote.npz --dry-run")
    run("calibrate far remote.npz")
    run("calibrate second@1 images --leave-out unclear")
    run("calibration-sets activate remote@1 1")
    run("models shadow second@1")
    run("models trial skin")
    run("models canary second@1 --share 0.5")
    run("models trial skin --end")
    run("models promote second@1")
    run("models promote second@1 --force-because", "a test")
    run("models rollback skin")
    run("models remove far@1")
    run("models remove linear@1")
    run("environments add ward")
    run("environments disable ward")
    run("environments enable ward")
    run("environments delete ward")
    head = run("heads show linear@1 1")
    Path("head.json").write_text(head)
    run("heads publish linear@1 head.json --environment site-b")
    run("heads publish linear@1 new.json --environment site-b --force-because", "a test")
    run("heads pin linear@1 --environment site-b --reason", "a study")
    run("heads rollback linear@1 --environment site-b")
    run("heads unpin linear@1 --environment site-b")
    run("heads rollback linear@1 --environment site-b --to 1 --pin", "a study")
    waiting = api.peek("cycles?open_proposals=true")["cycles"]
    for cycle, what in zip(waiting, ("approve", "reject --reason why"), strict=False):
        run(f"heads {what.split()[0]} {cycle['id']} {what.partition(' ')[2]}")
    proposals = [one["id"] for one in api.peek("proposals?state=open")["proposals"]]
    for proposal, decision in zip(
        proposals, ("proposals dismiss --reason why", "proposals accept"), strict=False
    ):
        run.both(f"{decision} {proposal}")
    Path("entry.json").write_text(json.dumps(inputs.entry("polyps")))
    run("knowledge add entry.json")
    key = run("knowledge key").strip()
    run("knowledge export polyps --output ours.bundle")
    run(f"knowledge trust away {key}")
    run.both("knowledge import ours.bundle --replace")
    run("knowledge delete polyps")
    run("knowledge refit")
    run("knowledge distrust away")
    run("fingerprint import manual.npz --task skin")
    run("fingerprint export skin --output exported.npz")
    run.both("retrain skin --data images --model net --plan")
    queued = api.peek("jobs?state=queued")["jobs"]
    run(f"jobs cancel {queued[0]['id']}" if queued else "jobs cancel absent")
    run("jobs cancel --created-by root --kind retrain")
    run("jobs cancel --created-by nobody")
    prediction = api(
        "POST", "/v1/logits", json={"logits": [[1, 2, 3]], "model": "remote@1", "request_id": "l1"}
    )
    made = prediction["predictions"][0]["prediction_id"]
    Path("labels.csv").write_text(f"prediction_id,label\n{made},malignant\n,1\n")
    run("feedback import labels.csv --dry-run")
    run.both("feedback import labels.csv --report rejected.csv")
    run.both(f"feedback history {made}")
    run("export balanced --output balanced.csv --model remote@1")
    run("export balanced --output balanced.csv")
    run("erase --group p1 --dry-run")
    run("erase --group p1 --yes")
    run("tokens create ward --scope predict --environment site-a --expires-in 30d")
    run("tokens rotate ward --overlap 1h")
    run("tokens log-out ward")
    run("tokens revoke ward")
    run("grafana export grafana")
    run("upgrade")
    run("init")
    show(
        run,
        Path("rejected.csv"),
        Path("balanced.csv"),
        *sorted(p for p in Path("grafana").rglob("*") if p.is_file()),
    )


def last(run: CommandLine) -> None:
    """Record commands after which rows of the store differ in each recording."""
    run("rotate-group-key")
    run("forget-group-keys --yes")


def show(run: CommandLine, *files: Path) -> None:
    """Record files that commands have written."""
    for file in files:
        run.recording.add(f"files/{file.name}", str(file), file.read_text() if file.exists() else "absent")


def helps(run: CommandLine) -> None:
    """Record the help of all commands and groups, and the answer to an unknown option."""
    for names in run.all():
        run(" ".join([*names, "--help"]), folder="help")
        run(" ".join([*names, "--nonsense"]), folder="help")
