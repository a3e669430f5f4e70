"""The steps after a training: head, evaluation, promotion report, fingerprint, and the entry of the knowledge base.

Each step may be repeated. A step that lacks an input gives a warning, because the model is trained all the same.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from lifelong_core.configuration.settings import Settings
from lifelong_core.deploy import LabeledLogits
from lifelong_core.deploy.labelled_set import LabelledSet
from lifelong_core.develop.knowledge.entry import Training
from lifelong_core.develop.knowledge.transferable import INITIAL_WEIGHTS
from lifelong_core.develop.training.result import TrainingResult
from lifelong_core.entities.registry import Model, Task
from lifelong_core.images.preprocessing_digest import OtherPreprocessingError
from lifelong_core.metrics import compute_metrics
from lifelong_core.promotion import PromotionReport
from lifelong_core.promotion.document import LocalizationComparison
from lifelong_core.promotion.page import promotion_html
from lifelong_core.store import Job, RefusedCalibrationError, Store, StoredTraining, register_calibration
from lifelong_core.values.errors import (
    ConflictError,
    LifelongError,
    NotFoundError,
    UnavailableError,
    UnidentifiableError,
)
from lifelong_monitor.jobs.kinds import fingerprint, validate
from lifelong_monitor.jobs.kinds.compare import compare_with_current
from lifelong_monitor.jobs.kinds.images import ImageLocation, ImageSource
from lifelong_monitor.jobs.kinds.kept_test_set import read_test_set
from lifelong_monitor.jobs.kinds.localization import compare_places
from lifelong_monitor.jobs.kinds.promotion_reports import report_summary

MEASURES = ("BA", "AC", "MCC", "AUROC")
"""Metrics of the classifier for the knowledge base; they use neither head nor costs, so that trainings compare."""


@dataclass(frozen=True, eq=False)
class AfterTraining:
    """The steps after the registration of a trained model."""

    store: Store
    settings: Settings
    job: Job
    task: Task
    model: Model
    training: StoredTraining
    result: TrainingResult
    test: LabeledLogits
    names: tuple[str, ...]
    """of the test images"""
    location: ImageLocation
    """of the images"""
    replicates: int
    level: float
    warnings: list[str] = field(default_factory=list[str])
    """why steps were left out, as sentences"""

    @classmethod
    def of(
        cls,
        store: Store,
        settings: Settings,
        job: Job,
        task: Task,
        location: ImageLocation,
        *,
        replicates: int,
        level: float,
    ) -> Self:
        """The steps for the model that the job has registered."""
        training = store.trainings.of_job(job.id)
        if training is None:
            raise ConflictError(f"the model of job {job.id} was removed.", field="model")
        test, names = read_test_set(store.artifacts.get(training.test_set))
        return cls(
            store=store,
            settings=settings,
            job=job,
            task=task,
            model=store.registry().models[training.model_id],
            training=training,
            result=TrainingResult.from_json(store.artifacts.get(training.result)),
            test=test,
            names=names,
            location=location,
            replicates=replicates,
            level=level,
        )

    def calibrate(self) -> int | None:
        """Fit the default head on the calibration split, and return its version; None: the set is refused."""
        present = self.store.registry().heads.get((self.model.id, None))
        if present is not None:
            return present.version
        labelled = self.store.calibration_sets.load(self.model.calibration_set_id or 0)
        try:
            return register_calibration(
                self.store, self.model.reference, labelled, actor=self.job.created_by
            ).version
        except (RefusedCalibrationError, OtherPreprocessingError, UnidentifiableError) as error:
            self.warnings.append(
                f"The calibration split is refused, so {self.model.reference} has no head and was not evaluated:"
                f" {error.message} Calibrate it by hand: `{self.model.calibration_command}`."
            )
            return None

    def evaluate(self) -> dict[str, Any] | None:
        """The recommended metrics of the test split; None: the task has no recommendation."""
        attached = self.store.recommendations.current(self.task.name)
        if attached is None:
            self.warnings.append(
                f"The task {self.task.name} has no recommendation, so the model was neither evaluated nor compared"
                f" with the promoted one. Attach one: `lifelong recommend --attach {self.task.name}`."
            )
            return None
        asked = validate.Payload(
            task=self.task.name,
            model=self.model.reference,
            recommendation_version=attached.version,
            labelled_set=self.store.artifacts.put(LabelledSet(self.test).to_bytes()),
            replicates=self.replicates,
            level=self.level,
        )
        return validate.evaluate(self.store, self.job, asked)

    def compare(self, images: ImageSource) -> dict[str, Any] | None:
        """The promotion report against the promoted model; None: there is no other one, or it cannot be compared."""
        if self.training.report is not None:
            report = PromotionReport.from_json(self.store.artifacts.get(self.training.report))
            return _promotion(self.training, report)
        current = self.store.registry().models.get(self._promoted() or 0)
        if current is None or current.id == self.model.id or self._recommendation_is_missing():
            return None
        if current.kind != "onnx":
            self.warnings.append(
                f"{current.reference} is an external model, so there are no logits of it to compare with."
            )
            return None
        try:
            test_set, report = compare_with_current(
                self.store,
                self.model,
                current,
                images,
                test=self.test,
                names=self.names,
                trained_on=self.result.data,
                localization=self._compare_places(current, images),
                replicates=self.replicates,
                level=self.level,
            )
        except UnavailableError:
            raise
        except LifelongError as error:
            self.warnings.append(
                f"{self.model.reference} was not compared with {current.reference}: {error.message}"
            )
            return None
        training = self.store.trainings.put_report(
            self.model.reference,
            test_set=test_set.to_bytes(),
            report=report.to_json().encode(),
            page=promotion_html(report).encode(),
            actor=self.job.created_by,
        )
        return _promotion(training, report)

    def fingerprint(self, images: ImageSource) -> str | None:
        """The digest of the task's fingerprint, made unless one of as many images is stored; None: there is none."""
        asked = fingerprint.Payload(task=self.task.name, **self.location.model_dump())
        expected = min(asked.samples, sum(split.images for split in self.result.splits.values()))
        fresh = self._fingerprint_of(expected)
        if fresh is not None:
            return fresh
        try:
            made = fingerprint.make_fingerprints(self.settings, asked, images)
        except UnavailableError:
            raise
        except LifelongError as error:
            self.warnings.append(
                f"The task was not fingerprinted: {error.message} {error.hint or ''}".rstrip()
            )
            return None
        told = fingerprint.store_fingerprints(self.store, self.job, asked, made)
        self.warnings.extend(told["warnings"])
        return told["fingerprints"][0]["digest"]

    def add_to_knowledge(self) -> dict[str, float]:
        """Add the training to the entry of the task; return its performance by measure."""
        performance = classifier_performance(self.test)
        samples = sum(split.images for split in self.result.splits.values())
        training = Training(
            scenario=self.training.recipe.scenario,
            source=self.training.recipe.source,
            architecture=self.training.recipe.architecture,
            hyperparameters=_hyperparameters(self.model, self.result),
            augmentation=self.training.recipe.augmentation.to_document(),
            performance={name: (value,) for name, value in performance.items()},
        )
        try:
            self.store.knowledge.add_training(
                self.task.name, training, samples=samples, actor=self.job.created_by
            )
        except ConflictError as error:
            self.warnings.append(
                f"{error.message[:1].upper()}{error.message[1:]} {error.hint or ''}".rstrip()
            )
        return performance

    def _compare_places(self, current: Model, images: ImageSource) -> LocalizationComparison | None:
        """Whether both models look at the same places of the test images; None: they cannot be compared."""
        try:
            return compare_places(self.store, self.model, current, images, names=self.names)
        except UnavailableError:
            raise
        except LifelongError as error:
            self.warnings.append(
                f"Where {self.model.reference} and {current.reference} look was not compared: {error.message}"
            )
            return None

    def _promoted(self) -> int | None:
        return self.store.tasks.get(self.task.name).promoted_model_id

    def _recommendation_is_missing(self) -> bool:
        return self.store.recommendations.current(self.task.name) is None

    def _fingerprint_of(self, samples: int) -> str | None:
        """The digest of a histogram fingerprint of so many images, by the extractor of the settings."""
        try:
            held = self.store.knowledge.get(self.task.name).fingerprints
        except NotFoundError:
            return None
        found = [one for one in held if one.kind == "histogram" and one.samples == samples]
        return found[-1].digest if found else None


def classifier_performance(test: LabeledLogits) -> dict[str, float]:
    """The measures of the knowledge base on a test set: the likeliest class decides; undefined ones are left out."""
    probabilities = softmax(test.logits.astype(np.float64), axis=1)
    found = compute_metrics(MEASURES, labels=test.labels, probabilities=probabilities)
    values = {name: float(np.mean(found[name])) for name in MEASURES}
    return {name: value for name, value in values.items() if np.isfinite(value)}


def _promotion(training: StoredTraining, report: PromotionReport) -> dict[str, Any]:
    """The stored report in the result of the job: compared model, digests and summary."""
    digests = {"result": training.report, "report": training.report_page}
    return {"against": report.current.reference, **digests, **report_summary(report)}


def _hyperparameters(model: Model, result: TrainingResult) -> dict[str, Any]:
    recipe = result.recipe
    return {
        "model": model.reference,
        INITIAL_WEIGHTS: recipe.initial_weights,
        "colour": recipe.colour,
        "image_size": recipe.image_size,
        "seed": recipe.seed,
        "best_epoch": result.best_epoch,
        **recipe.optimisation.model_dump(mode="json", exclude={"target_prevalence"}),
    }
