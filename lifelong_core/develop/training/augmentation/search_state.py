"""Everything that an interrupted search needs to go on, as bytes."""
# pyright: reportUnknownMemberType=false

import hashlib
import io
import pickle
from dataclasses import dataclass
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]


@dataclass(frozen=True, eq=False)
class SearchState:
    """A search during the training of its model, or after a round.

    Attributes:
        key: from `search_key`.
        training: checkpoint of the training; None: it has ended.
        weights: of the trained model; None: it is still trained.
        losses: of the candidates in each finished round.
    """

    key: str
    training: bytes | None
    weights: Tensors | None
    losses: tuple[tuple[float, ...], ...] = ()


def search_key(training_key: str, trials: int) -> str:
    """Digest of all that decides what a search gives.

    Args:
        training_key: of the model's training.
        trials: number of candidates.
    """
    return hashlib.sha256(f"search\n{training_key}\n{trials}".encode()).hexdigest()


def write_state(state: SearchState) -> bytes:
    """The state as bytes."""
    buffer = io.BytesIO()
    torch.save(vars(state), buffer)
    return buffer.getvalue()


def read_state(content: bytes, key: str) -> SearchState | None:
    """The state in these bytes; None: it is damaged, or that of another search. Nothing in it is executed."""
    try:
        found: dict[str, Any] = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
        state = SearchState(found["key"], found["training"], found["weights"], found["losses"])
    except (RuntimeError, ValueError, KeyError, TypeError, EOFError, OSError, pickle.UnpicklingError):
        return None
    return state if state.key == key else None
