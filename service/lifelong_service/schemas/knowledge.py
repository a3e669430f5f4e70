"""Answers about the knowledge base, trusted signers and neighbours."""

from typing import Annotated, Any, TypeAlias

from pydantic import Field
from typing_extensions import TypedDict

from lifelong_core.entities.entity import schema_of

EntryDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.knowledge.entry:KnowledgeEntry")
]
RankingDocument: TypeAlias = Annotated[
    dict[str, Any], schema_of("lifelong_core.develop.ranking.suggestion:Ranking")
]
Damage: TypeAlias = Annotated[str | None, Field(description="Why the entry cannot be read; null: it can.")]


class FingerprintAnswer(TypedDict):
    """A fingerprint of a task without its content."""

    digest: str
    kind: str
    extractor: Annotated[
        str | None,
        Field(description="Digest of the extractor's reference; null: a fingerprint without features."),
    ]
    bins: Annotated[int | None, Field(description="Of each feature; null: a fingerprint without bins.")]
    samples: Annotated[int | None, Field(description="Number of images; null: it has none.")]
    created_at: str
    created_by: str


class FingerprintList(TypedDict):
    """The fingerprints of a task."""

    task: str
    fingerprints: list[FingerprintAnswer]


class KnowledgeSummary(TypedDict):
    """An entry without its trainings."""

    task: str
    classes: Annotated[int | None, Field(description="null: the entry is damaged.")]
    samples: int | None
    modality: str | None
    transfers: Annotated[int, Field(description="Number of trainings with transfer.")]
    origin: Annotated[
        str, Field(description="Name of the signer whose bundle it came with; local: it was entered here.")
    ]
    digest: Annotated[str, Field(description="SHA-256 of the entry as JSON.")]
    fingerprints: list[FingerprintAnswer]
    created_at: str
    changed_at: str
    changed_by: str
    damaged: Damage


class KnowledgeDetails(KnowledgeSummary):
    """An entry of the knowledge base."""

    entry: Annotated[EntryDocument | None, Field(description="null: the entry is damaged.")]


class RankerAnswer(TypedDict):
    """The ranker that was fitted on the measured transfers."""

    digest: str
    outcomes_digest: Annotated[str, Field(description="Of the outcomes that it was fitted on.")]
    fitted_at: str
    is_current: Annotated[bool, Field(description="Whether the knowledge base is unchanged since then.")]


class KnowledgeList(TypedDict):
    """A page of the entries by task name, and counts of the whole knowledge base."""

    entries: list[KnowledgeSummary]
    next: Annotated[str | None, Field(description="`after` of the next page; null: this is the last one.")]
    total: Annotated[int, Field(description="Number of entries.")]
    fingerprints: int
    transfers: int
    origins: Annotated[dict[str, int], Field(description="Number of entries by origin.")]
    ranker: Annotated[RankerAnswer | None, Field(description="null: none was fitted yet.")]


class RemovedEntry(TypedDict):
    """The entry that was deleted."""

    removed: str


class ImportAnswer(TypedDict):
    """The tasks of an imported bundle; all are in the knowledge base now."""

    signer: Annotated[str, Field(description="Name of the trusted signer; local: this installation.")]
    digest: Annotated[str, Field(description="SHA-256 of what was signed.")]
    added: list[str]
    changed: list[str]
    unchanged: list[str]


class SignerAnswer(TypedDict):
    """A trusted signer; `public_key` has 64 hexadecimal digits."""

    name: str
    public_key: str
    added_at: str
    added_by: str


class SignerList(TypedDict):
    """The trusted signers by name."""

    signers: list[SignerAnswer]
    own_public_key: Annotated[
        str | None,
        Field(description="Of this installation, for others; null: it has no signing key yet."),
    ]


class RemovedSigner(TypedDict):
    """The signer that is not trusted any more; entries of its bundles stay."""

    removed: str
