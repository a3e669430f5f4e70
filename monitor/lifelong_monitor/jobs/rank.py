"""The kind `rank`: fits the ranker of source tasks on the outcomes of the knowledge base."""

from importlib import import_module
from typing import Any

from lifelong_core.errors import ConfigurationError
from lifelong_core.store import Job, Store

_FITTING = "lifelong_core.develop.ranking.fitting"


def work(store: Store, job: Job) -> dict[str, Any]:
    """Fit the ranker and store it, unless one was stored meanwhile that knows later changes.

    Returns:
        `digest`: of the ranker in use; `outcomes`: digest of the outcomes that it was fitted on; `revision`: of the
        knowledge base that they are from.

    Raises:
        ConfigurationError: scikit-learn is not installed.
        InvalidInputError: the outcomes are too few.
    """
    revision = store.knowledge.revision()
    ranker = _fitting().fit_ranker(store.knowledge.load().outcomes())
    stored = store.rankers.put(
        ranker.to_bytes(), outcomes_digest=ranker.outcomes_digest, revision=revision, actor=job.created_by
    )
    return {"digest": stored.digest, "outcomes": stored.outcomes_digest, "revision": stored.revision}


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
            field="lifelong[develop]",
            hint='Install the libraries where jobs run: pip install "lifelong[develop]".',
        ) from error
