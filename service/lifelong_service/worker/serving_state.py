"""The state that a worker serves; the registry poller writes it, all other parts read it."""

from collections.abc import Mapping

from lifelong_core.entities.access import Token
from lifelong_core.entities.registry import ModelLoad, Registry
from lifelong_core.values.errors import UnavailableError
from lifelong_service.prediction.snapshot import Snapshot


class ServingState:
    """The served snapshot, and the last problem of the registry poller.

    Attributes:
        snapshot: served registry and graphs; None before the first read.
        problem: why the registry cannot be read now; None while the database answers.
        recall_problem: why the cached registry cannot be used; None: it can, or there is none.
    """

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.problem: str | None = "the registry has not been read yet."
        self.recall_problem: str | None = None

    def current(self) -> Snapshot:
        """The served snapshot.

        Raises:
            UnavailableError: nothing has been read yet.
        """
        if self.snapshot is None:
            raise UnavailableError("the worker is starting.", hint="Try again in a second.")
        return self.snapshot

    @property
    def revision(self) -> int:
        """Revision of the served registry; -1 before the first one."""
        return self.snapshot.registry.revision if self.snapshot is not None else -1

    def is_current(self) -> bool:
        """Whether the database answered the latest poll."""
        return self.problem is None

    def outage(self) -> str | None:
        """Why the database cannot be asked; None while it answers."""
        return self.problem

    def environments(self) -> frozenset[str]:
        """Names of the environments.

        Raises:
            UnavailableError: nothing has been read yet.
        """
        return self.current().registry.environments

    def group_keys(self) -> tuple[str, ...] | None:
        """Digests of the group keys of the database; None before the first read."""
        return None if self.snapshot is None else self.snapshot.registry.group_keys

    def tokens(self) -> Mapping[bytes, Token]:
        """Valid tokens by the hash of their secret."""
        return {} if self.snapshot is None else self.snapshot.registry.tokens

    def loads(self) -> Mapping[int, ModelLoad]:
        """Loaded and failed graphs, by model id."""
        return {} if self.snapshot is None else self.snapshot.loads()

    def failed_models(self) -> dict[str, str]:
        """Why models could not be loaded, by their references."""
        return {} if self.snapshot is None else self.snapshot.failed()

    def providers(self) -> dict[str, str]:
        """ONNX Runtime execution provider of each loaded model, by its reference."""
        return {} if self.snapshot is None else self.snapshot.providers()

    def unused_gpu(self) -> list[str]:
        """Sentences on CUDA that is installed, but not used."""
        reasons = [] if self.snapshot is None else self.snapshot.unused_gpu()
        return [
            f"graphs run on the CPU, CUDA is installed and cannot be started: {reason}" for reason in reasons
        ]

    def calibrated_otherwise(self) -> list[str]:
        """A sentence per model whose active calibration set was made with another preprocessing than that here."""
        models = () if self.snapshot is None else self.snapshot.calibrated_otherwise()
        return [
            f"the calibration set of {model} was made with another preprocessing document or image decoder than this"
            f" worker uses, so its head may not fit the logits: `lifelong calibrate {model} held_out/`"
            for model in models
        ]

    def damaged_heads(self) -> list[str]:
        """A sentence per damaged head: its place, the reason, and the answer that requests get there."""
        return [] if self.snapshot is None else describe_damage(self.snapshot.registry)

    def promoted_without_head(self) -> list[str]:
        """A sentence per promoted model without a default head that can be served."""
        models = () if self.snapshot is None else self.snapshot.registry.without_head()
        return [
            f"the promoted model {model.reference} has no default head that can be served" for model in models
        ]


def describe_damage(registry: Registry) -> list[str]:
    """A sentence per damaged head: its place, the reason, and the answer that requests get there."""
    return [
        f"{registry.models[model_id].reference} {environment or '*'}: {reason}; "
        + (
            f"the last good head {registry.heads[model_id, environment].version} goes on"
            if (model_id, environment) in registry.heads
            else "there is no good one, requests get 503"
        )
        for (model_id, environment), reason in registry.damaged.items()
    ]
