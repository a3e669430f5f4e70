"""The model that answers a request, and the role in which it does."""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from lifelong_core.store.registry.records import Model
from lifelong_core.store.rollouts.records import Rollout

Role: TypeAlias = Literal["promoted", "canary", "shadow", "other"]

PROMOTED: Final[Role] = "promoted"
CANARY: Final[Role] = "canary"
SHADOW: Final[Role] = "shadow"
OTHER: Final[Role] = "other"
"""A model that the request names, and that is not the promoted one."""


@dataclass(frozen=True)
class Route:
    """The model that answers a request.

    Attributes:
        model: the model.
        role: in which it answers.
        promoted: answers instead if a canary fails.
        rollout: the trial whose candidate answers, or decides about the same image afterwards; None: there is none.
        earlier: ids of the models that may have answered the request when it was sent before.
    """

    model: Model
    role: Role
    promoted: Model
    rollout: Rollout | None = None
    earlier: frozenset[int] = frozenset()

    def without_candidate(self) -> "Route":
        """The route of a request whose canary failed."""
        return Route(self.promoted, PROMOTED, self.promoted, None, self.earlier)
