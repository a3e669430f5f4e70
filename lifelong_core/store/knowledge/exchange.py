"""Exchange of knowledge with other institutions: signed bundles into the knowledge base, and out of it."""

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from lifelong_core.entities.develop.knowledge import LOCAL, ImportAnswer
from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store.artifacts import digest_of
from lifelong_core.store.files import write_whole
from lifelong_core.values.errors import (
    ConfigurationError,
    ConflictError,
    InvalidInputError,
    PayloadTooLargeError,
)

if TYPE_CHECKING:
    from lifelong_core.develop.knowledge.signing import SigningKey
    from lifelong_core.store.store import Store

_FIELD = "signing_key_file"


def import_bundle(
    store: "Store",
    content: bytes,
    key_file: Path,
    *,
    replace: bool = False,
    accept_unsigned: bool = False,
    maximum_bytes: int | None = None,
    actor: str,
) -> ImportAnswer:
    """Import a bundle that a trusted signer, or this installation, has signed; nothing of a refused one is kept.

    Once the knowledge base holds fingerprints, those of a bundle must be of an extractor that it knows: they could not
    be compared otherwise.

    Args:
        store: the store.
        content: bytes of the bundle.
        key_file: signing key of this installation, if it has one.
        replace: whether to replace entries of another origin.
        accept_unsigned: whether to import a bundle without a signature too, as one of this installation.
        maximum_bytes: largest bundle; None: the default of bundles.
        actor: name for the audit log.

    Raises:
        PayloadTooLargeError: it is too large.
        InvalidInputError: it is damaged, forged, not signed by a trusted signer, from a newer version, or has
            fingerprints of an unknown extractor or of single images.
        ConflictError: an entry of another origin would change.
    """
    from lifelong_core.develop.knowledge.bundle import BundleLimits, read_bundle

    trusted = {signer.name: signer.public_key for signer in store.trusted_signers.list()}
    if (own := read_signing_key(key_file)) is not None:
        trusted[LOCAL] = own.public_key
    bundle = read_bundle(
        content,
        trusted,
        extractors=known_extractors(store),
        accept_unsigned=accept_unsigned,
        limits=None if maximum_bytes is None else BundleLimits(bytes=maximum_bytes),
    )
    signer = bundle.signer or LOCAL
    outcome = store.knowledge.import_base(bundle.knowledge, origin=signer, replace=replace, actor=actor)
    return ImportAnswer.of(outcome, signer=signer, digest=bundle.digest)


def known_extractors(store: "Store") -> frozenset[str] | None:
    """Extractors of the fingerprints in the knowledge base; None: it holds none of features."""
    found = {record.extractor for record in store.knowledge.fingerprint_records()} - {None}
    return frozenset(name for name in found if name is not None) or None


def export_bundle(
    store: "Store",
    key_file: Path,
    *,
    tasks: Collection[str] | None = None,
    maximum_bytes: int | None = None,
    actor: str,
) -> bytes:
    """Entries and their fingerprints as a bundle, signed with the key of this installation; noted in the audit log.

    Fingerprints that hold features of single images stay here.

    Args:
        store: the store.
        key_file: signing key of this installation.
        tasks: tasks to export; None: those that were entered here, since only their origin answers for the others.
        maximum_bytes: largest bundle; None: unlimited.
        actor: name for the audit log.

    Raises:
        NotFoundError: there is no entry of a task.
        InvalidInputError: there is nothing to export.
        ConflictError: this installation has no signing key.
        PayloadTooLargeError: the bundle is too large.
    """
    from lifelong_core.develop.knowledge.bundle import write_bundle

    key = read_signing_key(key_file)
    if key is None:
        raise ConflictError(
            "this installation has no signing key.",
            field=_FIELD,
            hint="Make one on its host: `lifelong knowledge key`.",
        )
    if tasks is None:
        records = [record for record in store.knowledge.list() if record.origin == LOCAL]
    else:
        records = [store.knowledge.get(task) for task in sorted(set(tasks))]
    if not records:
        raise InvalidInputError(
            "there is no local entry to export.",
            field="task",
            hint="Name the tasks to export those of other institutions.",
        )
    base = store.knowledge.load()
    fingerprints = {
        record.task: [one for one in base.fingerprints.get(record.task, ()) if one.is_shareable]
        for record in records
    }
    content = write_bundle([record.entry for record in records], fingerprints, key)
    if maximum_bytes is not None and len(content) > maximum_bytes:
        raise PayloadTooLargeError(
            f"the bundle has {len(content)} bytes, at most {maximum_bytes} are sent.",
            field="task",
            hint="Export fewer tasks at once, or on the host: `lifelong knowledge export`.",
        )
    store.knowledge.note_export([record.task for record in records], digest_of(content), actor=actor)
    return content


def read_signing_key(path: Path) -> "SigningKey | None":
    """The signing key in a file; None: there is no file.

    Raises:
        ConfigurationError: it cannot be read, or holds no key.
    """
    from lifelong_core.develop.knowledge.signing import SigningKey

    try:
        return SigningKey.from_pem(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(
            f"the signing key {path} cannot be read: {error.strerror}.", field=_FIELD
        ) from error
    except InvalidInputError as error:
        raise ConfigurationError(
            f"{path} holds no signing key: {error.message}", field=_FIELD, hint="Restore it from a backup."
        ) from error


def create_signing_key(path: Path) -> "SigningKey":
    """Make the signing key of this installation, in a file that only its owner can read.

    Raises:
        ConfigurationError: the file cannot be written.
    """
    from lifelong_core.develop.knowledge.signing import SigningKey

    key = SigningKey.generate()
    try:
        write_whole(path, key.to_pem(), mode=PRIVATE_FILE)
    except OSError as error:
        raise ConfigurationError(
            f"the signing key {path} cannot be written: {error.strerror}.", field=_FIELD
        ) from error
    return key
