"""Entries, fingerprints, signers and the ranker as JSON documents."""

from typing import TYPE_CHECKING

from lifelong_core.values.errors import UnavailableError
from lifelong_service.schemas.knowledge import (
    FingerprintAnswer,
    KnowledgeDetails,
    KnowledgeSummary,
    RankerAnswer,
    SignerAnswer,
)

if TYPE_CHECKING:
    from lifelong_core.store.knowledge.records import (
        FingerprintRecord,
        KnowledgeRecord,
        RankerRecord,
        TrustedSigner,
    )


def knowledge_summary(record: "KnowledgeRecord") -> KnowledgeSummary:
    """An entry without its trainings; a damaged one has no card, so that the list stays readable."""
    try:
        card, damaged = record.entry.card, None
    except UnavailableError as error:
        card, damaged = None, error.message
    return {
        "task": record.task,
        "classes": None if card is None else card.classes,
        "samples": None if card is None else card.samples,
        "modality": None if card is None else card.modality,
        "transfers": record.transfers,
        "origin": record.origin,
        "digest": record.digest,
        "fingerprints": [fingerprint_document(one) for one in record.fingerprints],
        "created_at": record.created_at.isoformat(),
        "changed_at": record.changed_at.isoformat(),
        "changed_by": record.changed_by,
        "damaged": damaged,
    }


def knowledge_document(record: "KnowledgeRecord") -> KnowledgeDetails:
    """An entry with its card and trainings."""
    summary = knowledge_summary(record)
    entry = record.entry.to_document() if summary["damaged"] is None else None
    return {**summary, "entry": entry}


def fingerprint_document(record: "FingerprintRecord") -> FingerprintAnswer:
    """A fingerprint without its content."""
    return {
        "digest": record.digest,
        "kind": record.kind,
        "extractor": record.extractor,
        "bins": record.bins,
        "samples": record.samples,
        "created_at": record.created_at.isoformat(),
        "created_by": record.created_by,
    }


def ranker_document(record: "RankerRecord", revision: int) -> RankerAnswer:
    """The fitted ranker; `revision` is that of the knowledge base."""
    return {
        "digest": record.digest,
        "outcomes_digest": record.outcomes_digest,
        "fitted_at": record.fitted_at.isoformat(),
        "is_current": record.revision == revision,
    }


def signer_document(signer: "TrustedSigner") -> SignerAnswer:
    """A trusted signer."""
    return {
        "name": signer.name,
        "public_key": signer.public_key,
        "added_at": signer.added_at.isoformat(),
        "added_by": signer.added_by,
    }
