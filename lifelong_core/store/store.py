"""The store: the repositories over one database and its artifacts."""

from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, overload

import sqlalchemy as sa

from lifelong_core.entities.registry import Model, Registry
from lifelong_core.store.access.audit_log import AuditLog
from lifelong_core.store.access.console_sessions import ConsoleSessions
from lifelong_core.store.access.tokens import Tokens
from lifelong_core.store.artifacts import Artifacts
from lifelong_core.store.cycles.affected_decisions import AffectedDecisionLog
from lifelong_core.store.cycles.cycles import Cycles
from lifelong_core.store.cycles.judged_predictions import JudgedPredictions
from lifelong_core.store.cycles.periods import PopulationPeriods
from lifelong_core.store.cycles.populations import PopulationCycles
from lifelong_core.store.cycles.swaps import Swaps
from lifelong_core.store.cycles.watching import PopulationWatch, TrafficCounts
from lifelong_core.store.design.interviews import Interviews
from lifelong_core.store.design.recommendations import Recommendations
from lifelong_core.store.engine.database import WRITER_PATIENCE_SECONDS, Database, Durability
from lifelong_core.store.engine.leases import Leases
from lifelong_core.store.evaluations.evaluations import Evaluations
from lifelong_core.store.heads.calibration_sets import CalibrationSets
from lifelong_core.store.heads.heads import Heads
from lifelong_core.store.health import Health
from lifelong_core.store.jobs.jobs import Jobs
from lifelong_core.store.knowledge.knowledge import Knowledge
from lifelong_core.store.knowledge.rankers import Rankers
from lifelong_core.store.knowledge.signers import TrustedSigners
from lifelong_core.store.labelling.plans import LabellingPlans
from lifelong_core.store.lifecycle.erasure import Erasure
from lifelong_core.store.lifecycle.exports import Exports
from lifelong_core.store.lifecycle.group_keys import GroupKeys
from lifelong_core.store.lifecycle.retention import Retention
from lifelong_core.store.log.commit_order import align_clock
from lifelong_core.store.log.finding import PredictionFinder
from lifelong_core.store.log.labels import Labels
from lifelong_core.store.log.partitions import ensure_partitions
from lifelong_core.store.log.predictions import Predictions
from lifelong_core.store.notifications.outbox import Notifications
from lifelong_core.store.performance.comparisons import PerformanceComparisons
from lifelong_core.store.proposals.proposals import RetrainingProposals
from lifelong_core.store.registry.changes import Changes, NotifiedChanges
from lifelong_core.store.registry.environments import Environments
from lifelong_core.store.registry.heartbeats import Monitors, Workers
from lifelong_core.store.registry.model_removal import remove_model
from lifelong_core.store.registry.models import Models
from lifelong_core.store.registry.registry import load_registry, read_revision
from lifelong_core.store.registry.tasks import Tasks
from lifelong_core.store.rollouts.promotions import Promotions
from lifelong_core.store.rollouts.rollouts import Rollouts
from lifelong_core.store.schema.version import check_schema
from lifelong_core.store.summaries.summaries import Summaries
from lifelong_core.store.trainings.trainings import Trainings

if TYPE_CHECKING:
    from lifelong_core.configuration.settings import Settings
    from lifelong_core.store.schema.migration import Migration


class Store:
    """All state of the product; threads may share one store. Every call is one transaction of its own.

    Attributes:
        database: the engine; only the store's own modules use it.
        artifacts: content-addressed files.
    """

    def __init__(
        self, database: Database, artifacts: Artifacts, *, knowledge_index: Path | None = None
    ) -> None:
        self.database = database
        self.artifacts = artifacts
        self.tasks = Tasks(database)
        self.models = Models(database, artifacts)
        self.promotions = Promotions(database, artifacts)
        self.rollouts = Rollouts(database)
        self.calibration_sets = CalibrationSets(database, artifacts)
        self.environments = Environments(database)
        self.heads = Heads(database)
        self.predictions = Predictions(database)
        self.finder = PredictionFinder(database)
        self.labels = Labels(database)
        self.labelling_plans = LabellingPlans(database)
        self.cycles = Cycles(database)
        self.population_cycles = PopulationCycles(database)
        self.judged = JudgedPredictions(database)
        self.population_periods = PopulationPeriods(database)
        self.swaps = Swaps(database)
        self.affected = AffectedDecisionLog(database)
        self.performance = PerformanceComparisons(database)
        self.summaries = Summaries(database)
        self.leases = Leases(database)
        self.evaluations = Evaluations(database, artifacts)
        self.trainings = Trainings(database, artifacts)
        self.interviews = Interviews(database)
        self.recommendations = Recommendations(database)
        self.jobs = Jobs(database, artifacts)
        self.knowledge = Knowledge(database, artifacts, knowledge_index)
        self.rankers = Rankers(database, artifacts)
        self.trusted_signers = TrustedSigners(database)
        self.group_keys = GroupKeys(database)
        self.tokens = Tokens(database)
        self.console_sessions = ConsoleSessions(database)
        self.traffic = TrafficCounts(database)
        self.workers = Workers(database)
        self.monitors = Monitors(database)
        self.proposals = RetrainingProposals(database)
        self.notifications = Notifications(database)
        self.watching = PopulationWatch(database)
        self.audit = AuditLog(database)
        self.retention = Retention(database)
        self.erasure = Erasure(database)
        self.exports = Exports(database)
        self.health = Health(database)

    @classmethod
    def open(
        cls,
        database_url: str,
        artifacts_url: str,
        *,
        artifact_cache: Path | None = None,
        knowledge_index: Path | None = None,
        durability: Durability = "process",
        patience_seconds: float = WRITER_PATIENCE_SECONDS,
    ) -> Self:
        """Open the store of a database that `migrate` created.

        Args:
            database_url: `sqlite:////absolute/file.db` or `postgresql+psycopg://user@host/database`.
            artifacts_url: an fsspec URL, e.g. `file:///folder`.
            artifact_cache: folder for local copies of remote artifacts; None: the user's cache folder.
            knowledge_index: folder of the index of fingerprints; None: without an index.
            durability: whether a commit survives the death of any process, or a power failure too.
            patience_seconds: longest wait of a writer for the write lock (SQLite).

        Raises:
            ConfigurationError: a URL is unusable, or the file cannot be opened.
            SchemaError: the database has no schema, or an older or newer one than this version.
            UnavailableError: the database does not answer.
        """
        artifacts = Artifacts(artifacts_url, cache=artifact_cache)
        database = Database(database_url, writer_patience_seconds=patience_seconds, durability=durability)
        try:
            check_schema(database)
        except BaseException:
            database.close()
            raise
        return cls(database, artifacts, knowledge_index=knowledge_index)

    @classmethod
    def from_settings(
        cls, settings: "Settings", *, patience_seconds: float = WRITER_PATIENCE_SECONDS
    ) -> Self:
        """Open the store of an installation; parameters and errors as `open`."""
        return cls.open(
            settings.resolved_database_url,
            settings.resolved_artifacts_url,
            artifact_cache=settings.artifact_cache_directory.resolve(),
            knowledge_index=settings.knowledge_index_directory.resolve(),
            durability=settings.log_durability,
            patience_seconds=patience_seconds,
        )

    def remove_model(self, reference: str, *, actor: str) -> Model:
        """Remove an unused model, with its calibration sets, heads and artifacts.

        Raises:
            NotFoundError: there is no such model.
            ConflictError: it is in use; the message lists the uses.
            UnavailableError: the database or the artifacts do not answer.
        """
        return remove_model(self.database, self.artifacts, reference, actor=actor)

    @staticmethod
    def migrate(database_url: str) -> "Migration":
        """Create or upgrade the database's schema, and the folder of a SQLite file; harmless to repeat.

        Returns:
            The revisions before and after.

        Raises:
            ConfigurationError: the URL is unusable, or folder or file cannot be written.
            SchemaError: the schema is newer than this version, or older than the first that it upgrades.
            UnavailableError: the database does not answer.
        """
        from lifelong_core.store.schema.migration import (
            upgrade,  # takes 0.1 s, too long for every start
        )

        database = Database(database_url, durability="power")
        try:
            migration = upgrade(database)
            with database.write() as connection:
                align_clock(connection)
            ensure_partitions(database, datetime.now(UTC).date())
        finally:
            database.close()
        return migration

    def check(self) -> None:
        """Make sure that the database answers.

        Raises:
            UnavailableError: it does not answer.
        """
        with self.database.read() as connection:
            connection.execute(sa.select(1))

    def check_writable(self) -> None:
        """Commit a change without effect: only a commit shows whether the disk has space.

        Raises:
            ConfigurationError: the file or the server is read-only.
            UnavailableError: the database does not answer, or its disk is full.
        """
        with self.database.write() as connection:
            if self.database.is_postgresql:
                # A lock without waiters; it is refused where a change would be refused.
                connection.execute(sa.text("SELECT value FROM commit_clock FOR SHARE"))
                return
            # A number in the file's header for applications. SQLite does not write an unchanged value.
            number = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
            connection.exec_driver_sql(f"PRAGMA user_version = {(number + 1) % 2**31}")

    @overload
    def registry(self, known_revision: None = None) -> Registry: ...

    @overload
    def registry(self, known_revision: int | None) -> Registry | None: ...

    def registry(self, known_revision: int | None = None) -> Registry | None:
        """The registry, consistent as of one revision.

        Args:
            known_revision: of the caller's registry; None: it has none.

        Returns:
            The registry; None if it is still `known_revision`, which takes one cheap query.
        """
        return load_registry(self.database, known_revision)

    def named_artifacts(self) -> dict[str, str]:
        """The digests of all artifacts that models and the knowledge base need, with a description of each."""
        named: dict[str, str] = {}
        for model in self.models.list():
            if model.artifact is not None:
                named[model.artifact] = f"the graph of {model.reference}"
            for one in self.calibration_sets.list(model.reference):
                named[one.digest] = f"calibration set {one.id} of {model.reference}"
        for training in self.trainings.list():
            for digest in training.artifacts:
                named[digest] = f"a file of the training of model {training.model_id}"
        for record in self.knowledge.fingerprint_records():
            named[record.artifact] = f"a fingerprint of {record.task}"
        if (ranker := self.rankers.current()) is not None:
            named[ranker.digest] = "the fitted ranker"
        return named

    def revision(self) -> int:
        """The present revision of the registry."""
        return read_revision(self.database)

    def changes(self) -> Changes:
        """A waiter for changes of the registry; the caller closes it."""
        return NotifiedChanges(self.database) if self.database.is_postgresql else Changes()

    def close(self) -> None:
        """Close all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""
        self.close()
