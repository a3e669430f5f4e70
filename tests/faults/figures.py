"""Results of several runs in one: the newest of each scenario on each database."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tests.databases import KINDS
from tests.faults.scenarios import SCENARIOS

Document: TypeAlias = dict[str, Any]
"""An outcome, with the `run` that it comes from."""


def read(file: Path | None) -> list[Document]:
    """What earlier runs have left there; nothing where there is no file."""
    return [] if file is None or not file.exists() else json.loads(file.read_text(encoding="utf-8"))


def write(file: Path | None, outcomes: Sequence[Document]) -> None:
    if file is not None:
        file.write_text(json.dumps(outcomes, indent=1), encoding="utf-8")


def with_outcome(outcomes: Sequence[Document], new: Document) -> list[Document]:
    """With the new one in the place of an older one; in the order in which everything runs."""
    others = [one for one in outcomes if _place(one) != _place(new)]
    return sorted([*others, new], key=_place)


def _place(outcome: Document) -> tuple[int, int]:
    names = [one.name for one in SCENARIOS]
    return KINDS.index(outcome["database"]), names.index(outcome["scenario"])
