"""The kind `rank`: fits the ranker of source tasks, and builds the index of fingerprints of this host."""

from importlib import import_module
from typing import Any

from lifelong_core.entities.develop.knowledge import RankerRecord
from lifelong_core.store import Job, Store
from lifelong_core.values.errors import ConfigurationError, InvalidInputError

_FITTING = "lifelong_core.develop.ranking.fitting"


def work(store: Store, job: Job) -> dict[str, Any]:
    """Build the index, then fit the ranker and store it, unless one was stored meanwhile that knows later changes.

    Returns:
        `digest`: of the ranker in use; `outcomes`: digest of the outcomes that it was fitted on; `revision`: of the
        knowledge base that they are from (all null: there is no ranker); `reason`: why none was fitted, else null.

    Raises:
        ConfigurationError: scikit-learn is not installed.
    """
    revision = store.knowledge.revision()
    base = store.knowledge.load(build_index=True)
    if not store.knowledge.state().transfers:
        return _describe(store.rankers.current(), reason="no transfer was measured.")
    fitting = _fitting()
    try:
        ranker = fitting.fit_knowledge_ranker(base)
    except InvalidInputError as error:
        if error.field != "outcomes":
            raise
        # A young knowledge base has too few outcomes: that is no failure.
        return _describe(store.rankers.current(), reason=error.message)
    stored = store.rankers.put(
        ranker.to_bytes(), outcomes_digest=ranker.outcomes_digest, revision=revision, actor=job.created_by
    )
    return _describe(stored)


def _describe(ranker: RankerRecord | None, *, reason: str | None = None) -> dict[str, Any]:
    return {
        "digest": None if ranker is None else ranker.digest,
        "outcomes": None if ranker is None else ranker.outcomes_digest,
        "revision": None if ranker is None else ranker.revision,
        "reason": reason,
    }


def _fitting() -> Any:
    """The module that fits; imported by name, because only a job's process may load scikit-learn.

    Raises:
        ConfigurationError: it is not installed.
    """
    try:
        return import_module(_FITTING)
    except ImportError as error:
        raise ConfigurationError(
            f"the ranker cannot be fitted here: {error}.",
            field="develop",
            hint="Install the libraries where jobs run, in the clone of lifelong:"
            ' pip install -c constraints.txt -e ".[develop]".',
        ) from error
