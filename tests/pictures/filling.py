"""What people did in the fleet besides sending predictions: tokens, jobs, trainings, knowledge, interviews."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from lifelong_core.deploy.adaptation.retraining import MissedThreshold, RetrainingNeed
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.design import start_interview
from lifelong_core.develop.training.recipe import Optimisation, Recipe
from lifelong_core.entities.labelling import LabellingPayload
from lifelong_core.store import Model, Scope, Store
from lifelong_core.store.evaluations.validations import submit_validation
from lifelong_core.values.preprocessing import Preprocessing
from tests.unit.develop.training.results import make_result
from tests.unit.monitor.population import BALANCED, CLASS_NAMES, draw
from tests.unit.service import onnx_graphs
from tests.unit.store.knowledge_samples import make_base, make_histogram

_VERDICT = {"advice": "promote", "headline": "the new model costs 0.04 less per case (0.01 to 0.07)"}
_PROGRESS = {"fraction": 0.42, "phase": "training", "epoch": 17, "epochs": 40, "validation_loss": 0.412}


def fill(store: Store, model: Model, environment: str) -> None:
    """Let monitors, developers and clinicians of the fleet leave what the pages of the console show."""
    for name, scopes, days in (
        ("gateway-north", [Scope.PREDICT, Scope.FEEDBACK], 90),
        ("prometheus", [Scope.METRICS], 9),
        ("dr-okafor", [Scope.OPERATE], 30),
        ("quality", [Scope.READ], None),
    ):
        expires_at = None if days is None else datetime.now(UTC) + timedelta(days=days)
        store.tokens.create(name, scopes, expires_at=expires_at, actor="ann")
    store.tokens.revoke("quality", actor="ann")
    _train(store, model)
    labelled = LabelledSet(draw(BALANCED, 300, seed=5))
    submit_validation(
        store, model.reference, labelled, environment=None, replicates=100, level=0.95, actor="dr-okafor"
    )
    plan = LabellingPayload(size=100, model=model.reference, environment=environment)
    store.jobs.submit("labelling_plan", plan.to_document(), actor="dr-okafor")
    missed = MissedThreshold("TPR", 2, 0.712, 0.65, 0.77, 0.8)
    need = RetrainingNeed("realised_performance", (missed,), datetime.now(UTC), ("cycle-1", "cycle-2"))
    store.proposals.propose(model.id, environment, need)
    for entry in make_base(30).entries.values():
        store.knowledge.put(entry, actor="ann")
    store.knowledge.put_fingerprint("task_0_with_a_long_name", make_histogram(), actor="ann")
    store.interviews.start(start_interview(class_names=CLASS_NAMES), task="lesions", actor="dr-okafor")
    answered = start_interview(class_names=("no cancer", "cancer"), answers={"class_scores_available": True})
    store.interviews.start(answered, task=None, actor="dr-okafor")


def _train(store: Store, model: Model) -> None:
    """A model with the record of its training and its promotion report, and a training that goes on."""
    recipe = Recipe(
        scenario="architecture",
        source="moles",
        architecture="resnet34",
        optimisation=Optimisation(learning_rate=0.001),
    )
    task = next(task.name for task in store.tasks.list() if task.id == model.task_id)
    trained = store.trainings.record(
        task,
        "lesions-net",
        onnx=onnx_graphs.linear(classes=3),
        preprocessing=Preprocessing(),
        recipe=recipe,
        result=make_result(recipe, epochs=12).to_json().encode(),
        calibration=draw(BALANCED, 300, seed=6),
        test_set=b"logits",
        job_id=uuid4(),
        actor="ann",
    )
    report = json.dumps({"current": {"reference": model.reference}, "verdict": _VERDICT}).encode()
    store.trainings.put_report(
        trained.reference, test_set=b"logits", report=report, page=b"<h1>Promotion report</h1>", actor="ann"
    )
    job = store.jobs.submit("retrain", {"task": task}, actor="ann")
    claimed = store.jobs.claim("trainer-1", lease_seconds=3600, kinds=["retrain"])
    if claimed is not None and claimed.id == job.id:
        store.jobs.report(claimed, _PROGRESS | {"learning_rate": 0.001, "device": "cuda:0"})
        store.jobs.append_log(claimed, ["12,400 images in 3 classes", "epoch 17: validation loss 0.412"])
