"""Entries of the knowledge base, their fingerprints, trusted signers and the fitted ranker.

A stored entry stays text until it is read: to parse thousands of entries takes too long for a list.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Annotated, Any, TypeAlias

from lifelong_core.develop.knowledge.entry import KnowledgeEntry
from lifelong_core.entities.entity import Entity, Moment, damage_error, read_kept, schema_of

LOCAL, PUBLISHED = "local", "published"
"""Origins of entries that were made here, and of those from published outcomes; no signer has these names."""
EntryDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.knowledge.entry:KnowledgeEntry")
]


@dataclass(frozen=True, kw_only=True)
class FingerprintAnswer(Entity):
    """A fingerprint of a task without its content."""

    digest: str
    """of its values"""
    kind: str
    extractor: str | None
    """digest of the extractor's reference; null: a fingerprint without features"""
    bins: int | None
    """of each feature; null: a fingerprint without bins"""
    samples: int | None
    """number of images; null: it has none"""
    created_at: Moment
    created_by: str


@dataclass(frozen=True, kw_only=True)
class FingerprintDisclosure(FingerprintAnswer):
    """What a fingerprint discloses of the images that it was made from."""

    statements: list[str]
    warning: str | None
    """why it must not be shared, or cannot be read; null: neither"""


@dataclass(frozen=True, kw_only=True)
class MappedTask(Entity):
    """A task in the plane."""

    task: str
    x: float
    y: float


@dataclass(frozen=True, kw_only=True)
class FingerprintRecord(FingerprintAnswer):
    """A row of `fingerprints`."""

    task: str
    artifact: str
    """digest of its file"""


@dataclass(frozen=True, kw_only=True)
class EntryFields(Entity):
    """An entry of the knowledge base without its document."""

    task: str
    transfers: int
    """number of trainings with transfer"""
    origin: str
    """name of the signer whose bundle it came with; local: it was entered here"""
    digest: str
    """SHA-256 of the entry as JSON"""
    created_at: Moment
    changed_at: Moment
    changed_by: str


@dataclass(frozen=True, kw_only=True)
class KnowledgeSummary(EntryFields):
    """An entry without its trainings."""

    classes: int | None
    """null: the entry is damaged"""
    samples: int | None
    modality: str | None
    trainings: int | None
    """number of trainings, those without transfer included; null: the entry is damaged"""
    licence: str | None
    """null: not stated"""
    fingerprints: list[FingerprintAnswer]
    damaged: str | None
    """why the entry cannot be read; null: it can"""


@dataclass(frozen=True, kw_only=True)
class KnowledgeDetails(KnowledgeSummary):
    """An entry of the knowledge base."""

    entry: EntryDocument | None
    """null: the entry is damaged"""
    measures: list[str]
    """of the performance of its trainings, else of those of another task; empty: no training is known"""


@dataclass(frozen=True, kw_only=True)
class KnowledgeRecord(EntryFields):
    """A row of `knowledge_entries` with its fingerprints."""

    document: str = field(repr=False)
    """the entry as JSON text, unchanged"""
    fingerprints: tuple[FingerprintRecord, ...]

    @cached_property
    def entry(self) -> KnowledgeEntry:
        """The entry.

        Raises:
            UnavailableError: it differs from the stored document.
        """
        name = f"the entry {self.task} of the knowledge base"
        if sha256(self.document.encode()).hexdigest() != self.digest:
            raise damage_error(name, "the digest of its document differs from the stored one.")
        return read_kept(KnowledgeEntry.from_json, self.document, name=name)


@dataclass(frozen=True, kw_only=True)
class ImportOutcome(Entity):
    """Tasks of an import, sorted by name; all are in the knowledge base now."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    """they were stored already"""


@dataclass(frozen=True, kw_only=True)
class ImportAnswer(ImportOutcome):
    """The tasks of an imported bundle; all are in the knowledge base now."""

    signer: str
    """name of the trusted signer; local: this installation"""
    digest: str
    """SHA-256 of what was signed"""


@dataclass(frozen=True, kw_only=True)
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


@dataclass(frozen=True, kw_only=True)
class TrustedSigner(Entity):
    """An institution whose bundles are imported: a row of `trusted_signers`."""

    name: str
    public_key: str
    """64 hexadecimal digits"""
    added_at: Moment
    added_by: str


@dataclass(frozen=True, kw_only=True)
class RankerFields(Entity):
    """The ranker that was fitted on the measured transfers."""

    digest: str
    """of its bytes, which are an artifact"""
    outcomes_digest: str
    """of the outcomes that it was fitted on"""
    fitted_at: Moment


@dataclass(frozen=True, kw_only=True)
class RankerAnswer(RankerFields):
    """The ranker that was fitted on the measured transfers."""

    is_current: bool
    """whether the knowledge base is unchanged since then"""


@dataclass(frozen=True, kw_only=True)
class RankerRecord(RankerFields):
    """A row of `rankers`."""

    revision: int
    """of the knowledge base that the outcomes were read from"""
