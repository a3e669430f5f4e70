"""Bundles: signed files with which institutions exchange entries and fingerprints.

A bundle is an npz file of four arrays of bytes: a header (JSON: schema version, entries, lengths of the
fingerprints), the files of the fingerprints one after another, the public key and the signature. The
signature covers header and fingerprints. Nothing of a bundle is used before all of it is checked.
"""

import hashlib
import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from lifelong_core.develop.fingerprints.fingerprint import Fingerprint
from lifelong_core.develop.fingerprints.kinds import fingerprint_from_bytes
from lifelong_core.develop.knowledge.entry import KnowledgeEntry
from lifelong_core.develop.knowledge.knowledge_base import KnowledgeBase
from lifelong_core.develop.knowledge.signing import SIGNATURE_BYTES, SigningKey, is_signed_by
from lifelong_core.values.control_characters import escape_controls
from lifelong_core.values.documents import Frozen, FrozenDocument
from lifelong_core.values.errors import InvalidInputError, PayloadTooLargeError
from lifelong_core.values.names import Name
from lifelong_core.values.npz import DAMAGED_HINT, read_npz, write_npz
from lifelong_core.values.validation_errors import read_json

SCHEMA_VERSION = 1

_FIELD = "bundle"
_PURPOSE = b"lifelong knowledge bundle\0"
"""Makes a signature of a bundle invalid for anything else that is ever signed with the same key."""


@dataclass(frozen=True)
class BundleLimits:
    """Largest bundle that is read."""

    bytes: int = 256 * 2**20
    """of the file"""
    entries: int = 10_000
    fingerprint_bytes: int = 2**31
    """memory of the arrays of all fingerprints"""


@dataclass(frozen=True)
class Bundle:
    """The content of a bundle, checked completely."""

    knowledge: KnowledgeBase
    signer: str | None
    """name of the trusted key that signed it; None: it is not signed"""
    public_key: str | None
    """of the signer, 64 hexadecimal digits"""
    digest: str
    """SHA-256 (hex) of what is signed"""


class _FingerprintItem(Frozen):
    task: Name
    bytes: Annotated[int, Field(ge=1)]


class _Header(FrozenDocument):
    schema_version: Literal[1] = 1
    entries: tuple[KnowledgeEntry, ...]
    fingerprints: tuple[_FingerprintItem, ...]


class _Envelope(BaseModel):
    """The part of a header that every version has."""

    schema_version: int


def write_bundle(
    entries: Iterable[KnowledgeEntry],
    fingerprints: Mapping[str, Sequence[Fingerprint]],
    key: SigningKey,
) -> bytes:
    """The entries and the fingerprints of their tasks as a signed file, equal for equal arguments.

    Args:
        entries: with licence and contact, which the receiver sees.
        fingerprints: by task; those of other tasks are left out.
        key: of the institution that answers for the content.

    Raises:
        InvalidInputError: two entries are of one task, a text holds control characters, or a fingerprint holds
            features of single images.
    """
    header, files = _make_content(entries, fingerprints)
    signature = key.sign(_signed_message(header, files))
    return _pack(header, files, bytes.fromhex(key.public_key), signature)


def write_unsigned_bundle(
    entries: Iterable[KnowledgeEntry], fingerprints: Mapping[str, Sequence[Fingerprint]]
) -> bytes:
    """`write_bundle` without a signature, for use within one institution: anyone can change such a file.

    Raises:
        InvalidInputError: as `write_bundle`.
    """
    return _pack(*_make_content(entries, fingerprints), b"", b"")


def read_bundle(
    content: bytes,
    trusted_keys: Mapping[str, str],
    *,
    extractors: Collection[str] | None = None,
    accept_unsigned: bool = False,
    limits: BundleLimits | None = None,
) -> Bundle:
    """Return the content of a bundle after a complete check.

    Args:
        content: bytes of the file.
        trusted_keys: public keys (64 hexadecimal digits) by name of their owner.
        extractors: digests of the extractor references that fingerprints may be of; None: any.
        accept_unsigned: whether a bundle without a signature is read too.
        limits: of the size; None: the defaults.

    Raises:
        PayloadTooLargeError: the bundle is above a limit.
        InvalidInputError: damaged, changed since it was signed, signed with a key that is not trusted, not signed, from
            a newer version, with fingerprints of another extractor or of single images, control characters in a text,
            or with an illegal entry.
    """
    limits = limits or BundleLimits()
    if len(content) > limits.bytes:
        raise PayloadTooLargeError(
            f"the bundle has {len(content)} bytes, at most {limits.bytes} are accepted.", field=_FIELD
        )
    parts = _unpack(content, limits)
    _check_version(parts.header)
    signer = _check_signature(parts, trusted_keys, accept_unsigned=accept_unsigned)
    header = _Header.from_json(parts.header)
    if len(header.entries) > limits.entries:
        raise PayloadTooLargeError(
            f"the bundle has {len(header.entries)} entries, at most {limits.entries} are accepted.",
            field=_FIELD,
        )
    fingerprints = _read_fingerprints(header.fingerprints, parts.files, extractors, limits)
    _check_texts(header.to_document(), "header")
    _check_texts([getattr(one, "keywords", ()) for own in fingerprints.values() for one in own], "keywords")
    entries = KnowledgeBase.from_entries(header.entries).entries
    return Bundle(
        KnowledgeBase(entries, fingerprints),
        signer,
        parts.public_key.hex() or None,
        hashlib.sha256(_signed_message(parts.header, parts.files)).hexdigest(),
    )


@dataclass(frozen=True)
class _Parts:
    """The four arrays of a file as bytes."""

    header: bytes
    files: bytes
    public_key: bytes = field(default=b"")
    signature: bytes = field(default=b"")


def _make_content(
    entries: Iterable[KnowledgeEntry], fingerprints: Mapping[str, Sequence[Fingerprint]]
) -> tuple[bytes, bytes]:
    """Header, and the files of the fingerprints one after another."""
    held = KnowledgeBase.from_entries(entries).entries
    items: list[_FingerprintItem] = []
    files: list[bytes] = []
    for task in held:
        for fingerprint in fingerprints.get(task, ()):
            _check_shareable(fingerprint, task)
            files.append(fingerprint.to_bytes())
            items.append(_FingerprintItem(task=task, bytes=len(files[-1])))
    header = _Header(entries=tuple(held.values()), fingerprints=tuple(items))
    _check_texts(header.to_document(), "header")
    return header.to_json().encode(), b"".join(files)


def _signed_message(header: bytes, files: bytes) -> bytes:
    """Purpose, length of the header, header, fingerprints: no other pair of parts gives the same bytes."""
    return _PURPOSE + struct.pack("<Q", len(header)) + header + files


def _pack(header: bytes, files: bytes, public_key: bytes, signature: bytes) -> bytes:
    parts = {"header": header, "fingerprints": files, "public_key": public_key, "signature": signature}
    return write_npz({name: np.frombuffer(part, dtype=np.uint8) for name, part in parts.items()})


def _unpack(content: bytes, limits: BundleLimits) -> _Parts:
    # read_npz counts 8 bytes for each number, here a byte
    arrays = read_npz(
        content,
        ("header", "fingerprints", "public_key", "signature"),
        field=_FIELD,
        maximum_bytes=8 * 2 * limits.bytes,
        hint=DAMAGED_HINT,
    )
    if any(array.dtype != np.uint8 or array.ndim != 1 for array in arrays.values()):
        raise InvalidInputError("expected arrays of bytes.", field=_FIELD)
    header, files, public_key, signature = (_as_bytes(array) for array in arrays.values())
    return _Parts(header, files, public_key, signature)


def _as_bytes(array: NDArray[np.generic]) -> bytes:
    return array.tobytes()


def _check_version(header: bytes) -> None:
    version = read_json(_Envelope, header).schema_version
    if version > SCHEMA_VERSION:
        raise InvalidInputError(
            f"the bundle has schema version {version}, this program reads {SCHEMA_VERSION}.",
            field=_FIELD,
            hint="Update lifelong, or ask the sender to export with an older version.",
        )


def _check_signature(parts: _Parts, trusted_keys: Mapping[str, str], *, accept_unsigned: bool) -> str | None:
    """Name of the key that signed the parts; None: they are not signed, which is accepted."""
    if not parts.public_key and not parts.signature:
        if accept_unsigned:
            return None
        raise InvalidInputError(
            "the bundle is not signed.",
            field=_FIELD,
            hint="Ask the sender to sign it, or accept unsigned bundles explicitly if it is your own.",
        )
    public_key = parts.public_key.hex()
    signer = next((name for name, trusted in trusted_keys.items() if trusted.lower() == public_key), None)
    if signer is None:
        raise InvalidInputError(
            f"the bundle is signed with a key that is not trusted: {public_key[:64]}.",
            field=_FIELD,
            hint="Compare the key with its owner over another channel, then add it to the trusted keys.",
        )
    message = _signed_message(parts.header, parts.files)
    if len(parts.signature) != SIGNATURE_BYTES or not is_signed_by(public_key, message, parts.signature):
        raise InvalidInputError(
            f"the signature is not that of {signer}: the bundle was changed or damaged.",
            field=_FIELD,
            hint="Ask the sender for the file again.",
        )
    return signer


def _check_texts(value: object, place: str) -> None:
    """Refuse texts that are commands to a terminal, in names of fields and in values."""
    if isinstance(value, str):
        if escape_controls(value, keep_lines=True) != value:
            raise InvalidInputError(
                f"a text holds control characters: {escape_controls(value[:80])!r}.",
                field=f"{_FIELD}.{place}",
                hint="Remove them from the entry; where the bundle is of others, ask its sender.",
            )
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, object]", value).items():
            _check_texts(name, place)
            _check_texts(item, f"{place}.{name}")
    elif isinstance(value, list | tuple):
        for item in cast("Sequence[object]", value):
            _check_texts(item, place)


def _read_fingerprints(
    items: Iterable[_FingerprintItem],
    files: bytes,
    extractors: Collection[str] | None,
    limits: BundleLimits,
) -> dict[str, tuple[Fingerprint, ...]]:
    """Fingerprints by task."""
    fingerprints: dict[str, tuple[Fingerprint, ...]] = {}
    start, memory = 0, limits.fingerprint_bytes
    for item in items:
        content = files[start : start + item.bytes]
        start += item.bytes
        fingerprint = fingerprint_from_bytes(content, maximum_bytes=memory)
        memory -= sum(value.nbytes for value in vars(fingerprint).values() if isinstance(value, np.ndarray))
        _check_shareable(fingerprint, item.task)
        _check_extractor(fingerprint, item.task, extractors)
        fingerprints[item.task] = (*fingerprints.get(item.task, ()), fingerprint)
    if start != len(files):
        raise InvalidInputError(
            f"expected fingerprints of {start} bytes, got {len(files)} bytes.", field=_FIELD
        )
    return fingerprints


def _check_shareable(fingerprint: Fingerprint, task: str) -> None:
    if not fingerprint.is_shareable:
        raise InvalidInputError(
            f"the {fingerprint.kind} fingerprint of {task} holds features of single images, which can identify them.",
            field=_FIELD,
            hint="Exchange fingerprints of another kind, such as histogram.",
        )


def _check_extractor(fingerprint: Fingerprint, task: str, extractors: Collection[str] | None) -> None:
    extractor = getattr(fingerprint, "extractor", None)
    if extractors is not None and extractor is not None and extractor not in extractors:
        raise InvalidInputError(
            f"the fingerprint of {task} is of another extractor: {extractor[:12]}.",
            field=_FIELD,
            hint="Fingerprints are comparable only if both institutions use the same extractor reference.",
        )
