"""Groups (patients, studies) are stored only as a hash under a secret key of the installation.

The key file holds one key per line. The first one is current: all new hashes use it. The others are old: erasure uses
them to find groups in the log.
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lifelong_core.deploy import LabeledLogits
from lifelong_core.runtime.files import PRIVATE_FILE
from lifelong_core.store.files import make_folder, sync_to_disk, write_whole
from lifelong_core.values.arrays import Integers
from lifelong_core.values.class_labels import composed, key_form
from lifelong_core.values.errors import ConfigurationError, ConflictError, InvalidInputError

KEY_BYTES = 32
HASH_BYTES = 16
_FIELD = "group_key_file"
_RESTORE = "Restore it from a backup: groups hashed with another key no longer match."


def group_hash(key: bytes, group: str) -> bytes:
    """Hash of a group, 16 bytes: BLAKE2b keyed with the secret, so that groups cannot be guessed."""
    return hashlib.blake2b(group.encode(), key=key, digest_size=HASH_BYTES).digest()


def group_hashes(keys: Sequence[bytes], group: str) -> tuple[bytes, ...]:
    """Return the hash of a group under each key, as given, in NFC and as `key_form`; the log may hold any of them.

    Raises:
        InvalidInputError: the group is empty; no prediction has an empty group.
    """
    if not key_form(group):
        raise InvalidInputError("expected the key of a patient or study.", field="group")
    forms = dict.fromkeys((key_form(group), group, composed(group)))
    return tuple(group_hash(key, form) for form in forms for key in keys)


def number_groups(groups: NDArray[np.generic] | None) -> Integers | None:
    """Replace group keys by numbers from 0 in the order of the samples, shape (N,).

    A labelled set is stored with these numbers, without keys or guessable hashes.

    Examples:
        >>> number_groups(np.array(["4711", "12", "4711"])).tolist()
        [0, 1, 0]
    """
    if groups is None:
        return None
    _, first, index = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[index].astype(np.int64)


def without_group_keys(labelled: LabeledLogits) -> LabeledLogits:
    """Return the set with numbers in place of group keys, for storage.

    Methods use only the partition of the samples into groups. With a keyed hash, a holder of the key could find a
    patient in the set.
    """
    return replace(labelled, groups=number_groups(labelled.groups))


def load_group_key(path: Path, *, create: bool) -> bytes:
    """Return the current key in `path`; with `create`, a missing file is created, readable by its owner only.

    Raises:
        ConfigurationError: as `load_group_keys`.
    """
    if create:
        _create(path)
    return load_group_keys(path)[0]


def load_group_keys(path: Path) -> tuple[bytes, ...]:
    """Return all keys in `path`, the current one first.

    Raises:
        ConfigurationError: the file is missing, unreadable or does not hold lines of 32 bytes in hexadecimal.
    """
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"the key file {path} does not exist.",
            field=_FIELD,
            hint="Copy it from another host of this installation, or bring it back from the backup; a new installation"
            " makes one with `lifelong init`.",
        ) from error
    except (OSError, ValueError) as error:
        raise _not_read(path, error) from error
    return parse_group_keys(path, text)


def parse_group_keys(path: Path, text: str) -> tuple[bytes, ...]:
    """Parse the text of a key file; return its keys, the current one first. `path` is for error messages.

    Raises:
        ConfigurationError: the text is not lines of 32 bytes in hexadecimal.
    """
    try:
        keys = tuple(bytes.fromhex(line) for line in text.splitlines())
    except ValueError as error:
        raise _not_read(path, error) from error
    wrong = [len(key) for key in keys if len(key) != KEY_BYTES]
    if wrong or not keys:
        raise ConfigurationError(
            f"the key file {path} holds a key of {wrong[0] if wrong else 0} bytes, expected {KEY_BYTES}.",
            field=_FIELD,
            hint=_RESTORE,
        )
    return keys


def write_group_keys(path: Path, keys: Sequence[bytes]) -> None:
    """Write these keys, the current one first, to the file at `path`, which is replaced.

    Raises:
        ConfigurationError: it cannot be written.
    """
    try:
        write_whole(path, _text(keys))
    except OSError as error:
        raise _not_written(path, error) from error


def rotate_group_key(path: Path) -> int:
    """Add a new current key; the old ones stay, for erasure. Return the number of keys.

    Raises:
        ConfigurationError: the file is missing, damaged or cannot be written.
        ConflictError: another rotation is in progress.
    """
    draft = path.with_name(f"{path.name}.rotating")
    try:
        # The draft is created before the keys are read: of two concurrent rotations one fails, and no key is lost.
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError as error:
        raise ConflictError(
            "another rotation is going on.",
            field=_FIELD,
            hint=f"If none is, it was interrupted and changed nothing: delete {draft}.",
        ) from error
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            keys = (secrets.token_bytes(KEY_BYTES), *load_group_keys(path))
            _write(file.fileno(), keys)
        draft.replace(path)
    except BaseException as error:
        # Only on failure: after the rename, a draft of this name belongs to another rotation.
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _not_written(path, error) from error
        raise
    sync_to_disk(path.parent)
    return len(keys)


def _create(path: Path) -> None:
    """Write the file under another name, then link it, so that one of two processes succeeds and reads are whole."""
    if path.exists():
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        make_folder(path.parent)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            _write(file.fileno(), [secrets.token_bytes(KEY_BYTES)])
    except OSError as error:
        raise _not_written(path, error) from error
    try:
        os.link(draft, path)
        sync_to_disk(path.parent)
    except FileExistsError:
        pass
    finally:
        draft.unlink()


def _write(descriptor: int, keys: Sequence[bytes]) -> None:
    os.write(descriptor, _text(keys))
    os.fsync(descriptor)


def _text(keys: Sequence[bytes]) -> bytes:
    return "".join(f"{key.hex()}\n" for key in keys).encode("ascii")


def _not_read(path: Path, error: Exception) -> ConfigurationError:
    return ConfigurationError(f"the key file {path} cannot be read: {error}.", field=_FIELD, hint=_RESTORE)


def _not_written(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"the key file {path} cannot be written: {error.strerror}.", field=_FIELD)
