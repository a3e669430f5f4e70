"""Keys of the group hash: their digests in the database, and the check of a host's key file against them.

The database holds digests only. All hosts of one installation use the same key file: with different keys, groups of
two hosts do not match, and erasing a group finds no rows.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

import sqlalchemy as sa

from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.lifecycle.privacy import (
    load_group_key,
    load_group_keys,
    rotate_group_key,
    write_group_keys,
)
from lifelong_core.store.registry.registry import change_registry, known_keys
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConfigurationError, ConflictError

_FIELD = "group_key_file"
_SHOWN = 8
"""Characters of a digest that messages and the audit log show."""


def key_digest(key: bytes) -> str:
    """Return the digest (SHA-256, hex) of a key, as stored in the database.

    A key has 256 random bits and cannot be guessed; the prefix separates this hash from those of groups.
    """
    return hashlib.sha256(b"lifelong group key\0" + key).hexdigest()


def short_digest(digest: str) -> str:
    """Return the first characters of a digest, enough to compare two hosts by eye."""
    return digest[:_SHOWN]


class GroupKeyError(ConfigurationError):
    """The key file of this host does not match the database."""

    code = "group_key"


@dataclass(frozen=True)
class KeyFile:
    """The key file of a host: its path and its keys, the current one first."""

    path: Path
    keys: tuple[bytes, ...]

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read the file at `path`.

        Raises:
            ConfigurationError: it is missing, unreadable or damaged.
        """
        return cls(path, load_group_keys(path))

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """Digests of the keys, in the same order."""
        return tuple(map(key_digest, self.keys))

    def newest_of(self, known: Sequence[str]) -> bytes | None:
        """Return the newest key whose digest is in `known`; None: there is none."""
        held = dict(zip(self.digests, self.keys, strict=True))
        return next((held[digest] for digest in known if digest in held), None)

    def unknown_newer(self, known: Sequence[str]) -> tuple[str, ...]:
        """Return the digests before all known ones, if the file holds every known key; else none.

        They come from a rotation on this installation that the database did not record. If the database holds no
        digest yet, all digests are returned.
        """
        if not set(known) <= set(self.digests):
            return ()
        first = next((index for index, digest in enumerate(self.digests) if digest in known), None)
        return self.digests[:first]


@dataclass(frozen=True)
class KeyInstallation:
    """Result of installing a copy of a key file.

    Attributes:
        file: the key file of this host after the installation.
        set_aside: file of the previous keys without logged groups here; None: there were none.
    """

    file: KeyFile
    set_aside: Path | None = None


def load_key_file(path: Path, known: Sequence[str]) -> KeyFile:
    """Read the file at `path`.

    Raises:
        GroupKeyError: it is missing, and the database holds digests: the message tells how to get it.
        ConfigurationError: it is missing, unreadable or damaged.
    """
    if known and not path.exists():
        raise missing_key_file(path, known)
    return KeyFile.load(path)


def hashing_key(file: KeyFile, known: Sequence[str]) -> bytes:
    """Return the key for new hashes: the newest in the file that the database has recorded.

    On a host with a file from before the last rotation, this is an old key.

    Raises:
        GroupKeyError: the database has recorded no key of the file.
    """
    key = file.newest_of(known)
    if key is not None:
        return key
    if known:
        raise _other_key(file, known)
    raise GroupKeyError(
        f"the database has not confirmed the key file {file.path} yet.",
        field=_FIELD,
        hint="The service asks for it when the database answers; `lifelong init` on this host does it, too.",
    )


def check_complete(file: KeyFile, known: Sequence[str]) -> None:
    """Check that the file holds every recorded key, since the log may hold groups under each of them.

    Raises:
        GroupKeyError: keys are missing; the message names them and tells how to get them.
    """
    missing = [digest for digest in known if digest not in file.digests]
    if not missing:
        return
    if file.newest_of(known) is None:
        raise _other_key(file, known)
    if known[0] in missing:
        raise GroupKeyError(
            f"the key file {file.path} is older than the installation's: the key was rotated on another host.",
            field=_FIELD,
            hint="Copy the key file of that host to this one.",
        )
    raise GroupKeyError(
        f"the key file {file.path} lacks {len(missing)} of {len(known)} keys under which groups may have been logged.",
        field=_FIELD,
        hint="Copy the key file of another host, or bring it back from the backup. If the keys were deleted on purpose"
        " or are lost, run `lifelong forget-group-keys`.",
    )


class GroupKeys(Repository):
    """Records the digests of all keys of the group hash; each change is in the audit log."""

    def known_digests(self) -> tuple[str, ...]:
        """Return the recorded digests, the current one first."""
        with self._database.read() as connection:
            return known_keys(connection)

    def confirm(self, file: KeyFile, *, actor: str) -> tuple[str, ...]:
        """Record the newer keys of a file that holds all recorded ones; another file changes nothing.

        On a database without a digest, the first of several concurrent calls decides.

        Returns:
            The recorded digests afterwards.
        """
        known = self.known_digests()
        if not file.unknown_newer(known):
            return known
        with change_registry(self._database) as connection:
            known = known_keys(connection)
            newer = file.unknown_newer(known)
            return _record(connection, (*newer, *known), actor) if newer else known

    def create(self, path: Path, *, actor: str) -> KeyFile:
        """Create the first key of a fresh installation, or confirm the existing file.

        Raises:
            GroupKeyError: this host has no file, and the database has a digest or was set up from another host.
            ConfigurationError: the file cannot be read or written.
        """
        if not path.exists():
            with change_registry(self._database) as connection:
                # The lock on the registry excludes a concurrent creation.
                known = known_keys(connection)
                if known or not _is_fresh(connection):
                    raise missing_key_file(path, known)
                load_group_key(path, create=True)
                _record(connection, KeyFile.load(path).digests, actor)
        file = KeyFile.load(path)
        self.confirm(file, actor=actor)
        return file

    def install(self, path: Path, source: KeyFile, *, actor: str) -> KeyInstallation:
        """Install a copy of another host's key file at `path`.

        Keys of this host that the copy lacks are not recorded in the database. A host never hashes groups with such a
        key, so they move to a file beside `path`, since another database may need them.

        Raises:
            GroupKeyError: the source does not hold every recorded key.
            ConfigurationError: a file cannot be written.
        """
        with change_registry(self._database) as connection:
            known = known_keys(connection)
            check_complete(source, known)
            own = load_group_keys(path) if path.exists() else ()
            extra = tuple(key for key in own if key not in source.keys)
            set_aside = None
            if extra:
                set_aside = path.with_name(f"{path.name}.{short_digest(key_digest(extra[0]))}")
                write_group_keys(set_aside, extra)
            write_group_keys(path, source.keys)
            _record(connection, (*source.unknown_newer(known), *known), actor)
        return KeyInstallation(KeyFile(path, source.keys), set_aside)

    def erasing_keys(self, path: Path, *, actor: str) -> tuple[bytes, ...]:
        """Return all keys under which the log may hold a group.

        Raises:
            GroupKeyError: the file lacks some of them; erasing would miss predictions.
            ConfigurationError: the file is missing or damaged.
        """
        file = load_key_file(path, self.known_digests())
        check_complete(file, self.confirm(file, actor=actor))
        return file.keys

    def rotate(self, path: Path, *, actor: str) -> KeyFile:
        """Add a new current key; the old ones stay, for erasure.

        The file is written before the commit of its digest. If the process ends in between, new hashes still use the
        old key, and `confirm` records the new one later.

        Raises:
            GroupKeyError: the file of this host lacks keys, so other hosts must not copy it.
            ConfigurationError: the file is missing, damaged or cannot be written.
            ConflictError: another rotation is in progress.
        """
        with change_registry(self._database) as connection:
            known = known_keys(connection)
            file = load_key_file(path, known)
            check_complete(file, known)
            known = (*file.unknown_newer(known), *known)
            rotate_group_key(path)
            file = KeyFile.load(path)
            _record(connection, (file.digests[0], *known), actor)
        return file

    def forgettable(self, path: Path) -> tuple[str, ...]:
        """Return the recorded digests whose keys the file at `path` lacks; all, if there is no file."""
        held = KeyFile.load(path).digests if path.exists() else ()
        return tuple(digest for digest in self.known_digests() if digest not in held)

    def forget(self, path: Path, digests: Sequence[str], *, actor: str) -> KeyFile:
        """Remove recorded keys permanently: groups logged under them can no longer be erased.

        The keys of the file at `path` become those of the installation; without a file, a new one is created.

        Args:
            path: of the key file.
            digests: as returned by `forgettable`.
            actor: name of the person or token.

        Raises:
            ConflictError: the keys have changed since.
            ConfigurationError: the file is damaged or cannot be written.
        """
        with change_registry(self._database) as connection:
            load_group_key(path, create=True)
            file = KeyFile.load(path)
            known = known_keys(connection)
            if {one for one in known if one not in file.digests} != set(digests):
                raise ConflictError("the keys have changed meanwhile.", field=_FIELD, hint="Look again.")
            write_audit(
                connection,
                actor,
                "group_keys.forget",
                "group key",
                {"keys": list(map(short_digest, digests))},
            )
            _record(connection, file.digests, actor)
        return file


def missing_key_file(path: Path, known: Sequence[str]) -> GroupKeyError:
    """Return the error for a host without a key file, on a database that another host has set up."""
    what = f"key {short_digest(known[0])}" if known else "a key that only its first host has"
    hint = _copy_to(path) + " If this is that host, bring the file back from the backup."
    if not known:
        hint += " Run `lifelong init` there first, so that the database knows it."
    return GroupKeyError(
        f"this database hashes groups with {what}, and this host has no key file {path}.",
        field=_FIELD,
        hint=hint,
    )


def _other_key(file: KeyFile, known: Sequence[str]) -> GroupKeyError:
    return GroupKeyError(
        f"the key file {file.path} holds another key ({short_digest(file.digests[0])}) than this database hashes"
        f" groups with ({short_digest(known[0])}).",
        field=_FIELD,
        hint=_copy_to(file.path),
    )


def _copy_to(path: Path) -> str:
    return (
        f"Copy group.key of the host that ran `lifelong init` first, and install it here with"
        f" `lifelong init --group-key COPY` (as {path}), or name it in LIFELONG_GROUP_KEY_FILE."
    )


def _is_fresh(connection: sa.Connection) -> bool:
    """Whether the database is unused."""
    return not any(
        connection.execute(sa.select(sa.exists(sa.select(table)))).scalar_one()
        for table in (tables.tokens, tables.tasks)
    )


def _record(connection: sa.Connection, digests: Sequence[str], actor: str) -> tuple[str, ...]:
    if known_keys(connection) != tuple(digests):
        connection.execute(sa.delete(tables.group_keys))
        rows = [{"position": position, "digest": digest} for position, digest in enumerate(digests)]
        connection.execute(sa.insert(tables.group_keys), rows)
        write_audit(
            connection, actor, "group_keys.record", "group key", {"keys": list(map(short_digest, digests))}
        )
    return tuple(digests)
