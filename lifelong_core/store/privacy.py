"""Groups (patients, studies) are stored only as a hash under a secret key of the installation."""

import hashlib
import os
import secrets
from pathlib import Path

from lifelong_core.errors import ConfigurationError

KEY_BYTES = 32
HASH_BYTES = 16


def group_hash(key: bytes, group: str) -> bytes:
    """The 16 bytes that stand for a group: BLAKE2b keyed with the secret, so that nobody can guess groups by trying."""
    return hashlib.blake2b(group.encode(), key=key, digest_size=HASH_BYTES).digest()


def load_group_key(path: Path, *, create: bool) -> bytes:
    """The secret key in `path`; with `create` it is made (readable by its owner only) where there is none.

    Raises:
        ConfigurationError: the file is missing, unreadable or does not hold 32 bytes in hexadecimal.
    """
    if create:
        _create(path)
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii"))
    except FileNotFoundError as error:
        raise ConfigurationError(
            f"the key file {path} does not exist.",
            field="group_key_file",
            mend="Make it with `lifelong init`.",
        ) from error
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the key file {path} cannot be read: {error}.",
            field="group_key_file",
            mend="Bring it back from the backup: groups hashed with another key no longer match.",
        ) from error
    if len(key) != KEY_BYTES:
        raise ConfigurationError(
            f"the key file {path} holds {len(key)} bytes, expected {KEY_BYTES}.",
            field="group_key_file",
            mend="Bring it back from the backup: groups hashed with another key no longer match.",
        )
    return key


def _create(path: Path) -> None:
    """Write the whole file under another name, then link it: of two processes one wins, and none reads half a key."""
    if path.exists():
        return
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_hex(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise ConfigurationError(
            f"the key file {path} cannot be written: {error}.", field="group_key_file"
        ) from error
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
