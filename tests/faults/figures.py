"""Combined results of several runs: the latest of each scenario on each database."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tests.databases import KINDS
from tests.faults.scenarios import SCENARIOS

Document: TypeAlias = dict[str, Any]
"""An outcome with its `run`."""


def read(file: Path | None) -> list[Document]:
    """Return the results of earlier runs in a file; empty if it does not exist."""
    return [] if file is None or not file.exists() else json.loads(file.read_text(encoding="utf-8"))


def write(file: Path | None, outcomes: Sequence[Document]) -> None:
    if file is not None:
        file.write_text(json.dumps(outcomes, indent=1), encoding="utf-8")


def with_outcome(outcomes: Sequence[Document], new: Document) -> list[Document]:
    """Return the outcomes with the new one in place of an older one, in the order of the scenarios."""
    others = [one for one in outcomes if _place(one) != _place(new)]
    return sorted([*others, new], key=_place)


def _place(outcome: Document) -> tuple[int, int]:
    names = [one.name for one in SCENARIOS]
    return KINDS.index(outcome["database"]), names.index(outcome["scenario"])
