"""Entries, fingerprints, signers and the fitted ranker, as stored.

Documents stay text until they are read: parsing them imports the develop loop, which takes too long for the start of a
serving process.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from lifelong_core.entities.entity import damage_error, read_kept
from lifelong_core.store.artifacts import digest_of

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.entry import KnowledgeEntry

LOCAL, PUBLISHED = "local", "published"
"""Origins of entries that were made here, and of those from published outcomes; no signer has these names."""


@dataclass(frozen=True)
class FingerprintRecord:
    """A fingerprint of a task."""

    task: str
    digest: str
    """of its values"""
    artifact: str
    """digest of its file"""
    kind: str
    extractor: str | None
    """digest of the extractor's reference; None: a fingerprint without features"""
    bins: int | None
    """of each feature; None: a fingerprint without bins"""
    samples: int | None
    """number of images; None: a fingerprint without images"""
    created_at: datetime
    created_by: str


@dataclass(frozen=True)
class KnowledgeRecord:
    """An entry of the knowledge base with its fingerprints."""

    task: str
    document: str = field(repr=False)
    """the entry as JSON text, unchanged"""
    digest: str
    """SHA-256 (hex) of the document"""
    transfers: int
    """number of trainings with transfer"""
    origin: str
    """name of the signer whose bundle it came with, or `local`"""
    created_at: datetime
    changed_at: datetime
    changed_by: str
    fingerprints: tuple[FingerprintRecord, ...]

    @cached_property
    def entry(self) -> "KnowledgeEntry":
        """The entry.

        Raises:
            UnavailableError: it differs from the stored document.
        """
        from lifelong_core.develop.knowledge.entry import KnowledgeEntry

        name = f"the entry {self.task} of the knowledge base"
        if digest_of(self.document.encode()) != self.digest:
            raise damage_error(name, "the digest of its document differs from the stored one.")
        return read_kept(KnowledgeEntry.from_json, self.document, name=name)


@dataclass(frozen=True)
class ImportOutcome:
    """Tasks of an import, sorted by name."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    """they were stored already"""


@dataclass(frozen=True)
class KnowledgeState:
    """Counts of the knowledge base at one revision."""

    revision: int
    """counts its changes"""
    entries: int
    fingerprints: int
    transfers: int
    """trainings with transfer"""
    origins: Mapping[str, int]
    """entries by origin"""


@dataclass(frozen=True)
class TrustedSigner:
    """An institution whose bundles are imported."""

    name: str
    public_key: str
    """in hexadecimal"""
    added_at: datetime
    added_by: str


@dataclass(frozen=True)
class RankerRecord:
    """The fitted ranker; `digest` is that of its bytes, which are an artifact."""

    digest: str
    outcomes_digest: str
    """of the outcomes that it was fitted on"""
    revision: int
    """of the knowledge base that these were read from"""
    fitted_at: datetime
