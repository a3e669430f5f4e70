"""The calls of the API that fill the store and read it, in order; each answer is recorded."""

import json
import re
from typing import Any

from tests.behaviour import inputs
from tests.behaviour.inputs import ANSWERS, BALANCED, CLASSES, COSTS, RECIPE, SHIFTED
from tests.behaviour.recording import ANY, Api
from tests.unit.service import onnx_graphs

ROWS = 400
ABSENT = "00000000-0000-7000-8000-000000000000"
ENVIRONMENTS = {"balanced": BALANCED, "shifted": SHIFTED} | {f"proposed-{one}": SHIFTED for one in "abcd"}
TRANSFER = [{"scenario": "pretraining", "source": "nevi", "performance": {"BA": [0.75, 0.8, 0.78]}}]
THRESHOLDS = [
    {"metric": "EC", "value": 0.5, "by": "estimate"},
    {"metric": "TPR", "value": 0.8, "class_index": 2},
]
LISTS = """
tasks models models/linear@1 models/remote models/linear@1/training models/net@1/training models/remote@1/heads
models/linear@2/reports environments tokens workers monitors tasks/skin/trial tasks/skin/fingerprints performance
trainings validations sessions knowledge/skin/disclosures
audit?limit=500 audit?kind=changes&limit=3 audit?action=heads.swap audit?subject=skin audit?limit=0
cycles cycles?model=remote&environment=shifted&outcome=swap&limit=1 jobs jobs?kind=validate&limit=1
proposals notifications interviews labelling-plans populations/remote@1/balanced/labelling-plan knowledge signers
"""


def set_up(api: Api) -> None:
    """Tasks, models, calibration sets, environments and tokens."""
    api.get("/livez")
    api.get("/readyz")
    api.post("tasks", name="skin", classes=CLASSES, costs=COSTS)
    api.post("tasks", name="moles", classes=["no", "yes"], costs=[[0, 1], [10, 0]])
    api.post("tasks", 409, name="skin", classes=CLASSES, costs=inputs.OTHER_COSTS)
    api.post("tasks", 422, name="x", classes=["a"], costs=[[0]])
    document = {"task": "skin", "name": "linear", "kind": "onnx", "preprocessing": inputs.GREY}
    for factor in (1.0, 0.5):
        graph = {"onnx": ("m.onnx", onnx_graphs.scaled(factor), "application/octet-stream")}
        api("POST", "models", data={"document": json.dumps(document)}, files=graph)
    for name in ("remote", "remote", "gone"):
        api.post("models", task="skin", name=name, kind="external")
    api("DELETE", "models/gone@1")
    images = [("images", (f"{n}.png", inputs.image(n * 20), "image/png")) for n in range(3)]
    api("POST", "models/linear@1/logits", files=images)
    for model, seed in (("linear@1", 1), ("linear@2", 2), ("remote@1", 3), ("remote@2", 4), ("remote@1", 5)):
        logits, labels = inputs.draw(BALANCED, 600, seed)
        content = inputs.npz(logits=logits, labels=labels)
        api.send(f"models/{model}/calibration-sets?dry_run=true", content, "x-npz")
        api.send(f"models/{model}/calibration-sets", content, "x-npz")
    sets = [one["id"] for one in api.get("models/remote@1/calibration-sets")["calibration_sets"]]
    for one in sets:
        api.get(f"models/remote@1/calibration-sets/{one}")
    for one in sets:
        api.post(f"models/remote@1/calibration-sets/{one}/activate", ANY)
    for name in ("site-a", "site-b", "unused"):
        api.post("environments", name=name)
    for what in ("disable", "enable", "disable"):
        api.post(f"environments/site-b/{what}")
    api("DELETE", "environments/unused")
    api.post("models/linear@1/promote")
    for name, scopes in (("clinic", ["predict", "feedback"]), ("reader", ["read"]), ("scraper", ["metrics"])):
        api.secrets[name] = api.post("tokens", name=name, scopes=scopes)["secret"]
    api.post("tokens", name="bound", scopes=["predict"], environments=["site-a"])
    api.post("tokens/bound/rotate", overlap_seconds=60)
    api("DELETE", "tokens/bound")


def predict(api: Api) -> None:
    """Predictions of images and logits in several environments, and labels."""
    for query, shade in (
        ("", 10),
        ("?environment=site-a&group=p1&request_id=r1", 90),
        ("?model=linear@2", 200),
    ):
        made = api.send(f"/v1/predict{query}", inputs.image(shade), "image/png")["prediction_id"]
    api.send("/v1/predict?environment=site-a&request_id=r1", inputs.image(90), "image/png", 409)
    api("POST", "/v1/predict", files={"image": ("a.png", inputs.image(50), "image/png")})
    api.post("/v1/logits", logits=[[1, 2, 3]])
    api.post("/v1/logits", 422, logits=[1, 2, 3])
    api.post("/v1/feedback", prediction_id=made, label=0)
    api.post("/v1/feedback", prediction_id=made, label="malignant")
    api.post("/v1/feedback", request_id="r1", environment="site-a", label=2, source="lab")
    api.post("/v1/feedback", 422, prediction_id=made, label=9)
    api.post("/v1/feedback", 404, prediction_id=ABSENT, label=1)
    api.get(f"predictions/{made}/labels")
    for number, (environment, prevalence) in enumerate(ENVIRONMENTS.items()):
        log(api, environment, *inputs.draw(prevalence, ROWS, 20 + number))
    for number in range(6):
        logits, labels = inputs.draw(BALANCED, 250, 30 + number)
        log(api, f"broken-{number}", logits[:, [2, 0, 1]] * 0.2 + 1, labels)
    log(api, "few", *inputs.draw(BALANCED, 30, 31))


def log(api: Api, environment: str, logits: Any, labels: Any, rows: int = 200) -> None:
    """Predictions of the model remote in one environment, half of them with labels."""
    for start in range(0, len(logits), rows):
        part = logits[start : start + rows]
        request = {"environment": environment, "model": "remote@1", "request_id": f"{environment}-{start}"}
        groups = [f"{environment}-{(start + row) // 2}" for row in range(len(part))]
        api.post("/v1/logits", logits=part.tolist(), groups=groups, **request)
        known = [{**request, "row": row, "label": int(labels[start + row])} for row in range(0, len(part), 2)]
        api.post("/v1/feedback", labels=known, partial=True)


def heads(api: Api) -> None:
    """Heads published, rolled back, pinned; trials, promotions and their roll-back."""
    path, place = "models/linear@1/heads", {"environment": "site-a"}
    api.get(path)
    head = api.get(f"{path}/1")
    head = head.get("head", head) | {"bias": [0.5, 0, -0.5]}
    api.post(path, head=head, **place)
    api.post(path, 409, head=head, expected_sequence=0, **place)
    api.post(path, 422, head={})
    api.post(path, head=head | {"bias": [0.1, 0, 0]}, **place)
    api.post(f"{path}/rollback", **place)
    api.post(f"{path}/rollback", to_version=1, pin_reason="frozen", **place)
    api.post(f"{path}/unpin", **place)
    api.post(f"{path}/pin", reason="audit", **place)
    api.post(f"{path}/pin", 409, reason="again", **place)
    api.get(f"{path}?environment=site-a")
    api.get("tasks/skin/trial")
    api.post("models/linear@2/shadow")
    api.get("tasks/skin/trial")
    api.post("models/linear@2/canary", share=0.25)
    api("DELETE", "tasks/skin/trial")
    api.post("models/linear@2/promote", ANY)
    api("POST", "tasks/skin/rollback", json={})
    api.get("tasks/skin/promotions")


def design(api: Api) -> None:
    """Interviews and recommendations."""
    first = api.post("interviews", task="skin")["id"]
    api.post(f"interviews/{first}/answers", answers={"class_scores_available": True})
    api.post(f"interviews/{first}/answers", 422, answers={"class_scores_available": "perhaps"})
    api.post(f"interviews/{first}/back")
    api.post(f"interviews/{first}/answers", answers=ANSWERS)
    api.post(f"interviews/{first}/finish")
    api.get(f"interviews/{first}")
    choice = api.post("interviews", answers=inputs.OPEN_CHOICE)["id"]
    api.post(f"interviews/{choice}/choices", choices={"DG3.4": "TPR"})
    api.post(f"interviews/{choice}/finish")
    gone = api.post("interviews", class_names=["a", "b"])["id"]
    api("DELETE", f"interviews/{gone}")
    api.post("tasks/skin/recommendations", interview=first, thresholds=THRESHOLDS)
    api.post("tasks/skin/recommendations", interview=first, refit_head=True, expected_version=1)
    for what in ("", "/current", "/1"):
        api.get(f"tasks/skin/recommendations{what}")


def knowledge(api: Api) -> None:
    """Entries of the knowledge base, signers and a bundle."""
    for name in ("nevi", "moles", "skin"):
        entry = inputs.entry(name)
        entry["trainings"] += TRANSFER if name == "moles" else []
        api("PUT", f"knowledge/{name}", json=entry)
    api("PUT", "knowledge/nevi", json={"card": {"name": "nevi", "classes": 1, "samples": 5}}, status=422)
    for what in ("/nevi", "?limit=2", "?limit=2&after=nevi", "/export?task=nevi"):
        api.get(f"knowledge{what}", ANY)
    api.post("signers", name="clinic", public_key=inputs.PUBLIC_KEY)
    api.get("signers")
    api("DELETE", "signers/clinic")
    api("DELETE", "knowledge/nevi")
    for query in ("scenario=pretraining", "scenario=architecture&measure=BA&limit=2", "scenario=no"):
        api.get(f"tasks/skin/neighbours?{query}", ANY)


def jobs(api: Api, roots: str) -> None:
    """Jobs that are queued while no monitor runs, and cancelled."""
    path = f"{roots}/images"
    api.post("tasks/skin/retrainings/plan", recipe=RECIPE, images=1000, images_per_second=50)
    api.post("tasks/skin/retrainings/plan", recipe=RECIPE, path=path)
    for job in (
        api.post("tasks/skin/retrainings", path=path, recipe=RECIPE),
        api.send("tasks/skin/retrainings?replicates=200", inputs.archive(), "zip"),
        api.post("tasks/skin/augmentation-searches", path=path, trials=3),
        api.send("tasks/skin/fingerprints?kinds=histogram&bins=50", inputs.archive(), "zip"),
    ):
        api.post(f"jobs/{job['id']}/cancel")
    api.post("tasks/skin/fingerprints", path=path)
    for kind in ("fingerprint", "rank"):  # a ranking beside the first cycles would come at no certain time
        api.post(f"jobs/cancel?kind={kind}")


def judge(api: Api) -> None:
    """Jobs that a monitor does at once."""
    validated, compared = inputs.npz(**inputs.labelled()), inputs.npz(**inputs.paired())
    api.send("models/linear@1/validations?replicates=100", validated, "x-npz")
    api.send("models/linear@2/reports?replicates=100&against=linear@1", compared, "x-npz")


def read(api: Api) -> None:
    """What can be read when the cycles and jobs are done."""
    for path in LISTS.split():
        api.get(path, ANY)
    for job in api.peek("jobs?limit=100")["jobs"]:
        for part in ("", "/log", "/result", "/report", "/events"):
            if part != "/events" or job["state"] not in ("queued", "running"):
                api.get(f"jobs/{job['id']}{part}", ANY)
        if job["kind"] == "compare":
            api.get(f"models/linear@2/reports/{job['id']}", ANY)
            api.get(f"models/linear@2/reports/{job['id']}/page", ANY)
    for cycle in api.peek("cycles")["cycles"]:
        api.get(f"cycles/{cycle['id']}")
        api.get(f"cycles/{cycle['id']}/affected?limit=3", ANY)
    for environment in (*ENVIRONMENTS, "broken-1", "few", "nowhere"):
        api.get(f"populations/remote@1/{environment}/performance", ANY)
        api.get(f"populations/remote@1/{environment}?limit=5", ANY)
    api.get("populations?order=name")
    for kind, name in (("proposals", "proposals"), ("labelling-plans", "plans")):
        for one in api.peek(kind)[name]:
            api.get(f"{kind}/{one['id']}")


def finish(api: Api) -> None:
    """Decisions on proposed retrainings, and an erasure: they change what the commands would read."""
    proposals = [one["id"] for one in api.get("proposals?state=open")["proposals"]]
    for proposal in proposals[:1]:
        api.post(f"proposals/{proposal}/dismiss", reason="a broken scanner")
    for proposal in proposals[1:2]:
        api("POST", f"proposals/{proposal}/accept", json={})
    api.post("groups/erase", group="few-1")


def refuse(api: Api) -> None:
    """Every route without a token, with a wrong one, with too small a scope, an unknown field, or for an absent thing.

    Some become entries of the audit log in the next ten seconds, so this comes last.
    """
    api.send("/v1/predict?environment=site-b", inputs.image(90), "image/png", 403)
    api.send("/v1/predict", b"no image", "image/png", 422)
    api.send("knowledge/import", b"no bundle", "octet-stream", 422)
    api.send("models/linear@1/validations", b"PK", "x-npz", 422)
    logits, labels = inputs.draw(BALANCED, 300, 6)
    api.post("models/linear@1/calibration-sets", 422, logits=logits.tolist(), labels=labels[::-1].tolist())
    for method, template in api.operations:
        if template == "/metrics":  # open to all
            continue
        path = re.sub(r"\{(interview|job|cycle|proposal|prediction|plan)\}", ABSENT, template)
        path = re.sub(r"\{\w+\}", "absent", re.sub(r"\{(version|identifier)\}", "1", path))
        body = {} if method in ("GET", "DELETE") else {"json": {"nonsense": 1}}
        for token in (None, "ll_" + "x" * 43, api.secrets["scraper"]):
            api(method, path, token=token, status=ANY, folder="refused", **body)
        api(method, f"{path}?nonsense=1", status=ANY, folder="refused", **body)
        if "cancel" not in path and "{" in template:
            api(method, path, status=ANY, folder="refused", **body)
