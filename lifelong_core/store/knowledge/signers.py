"""Institutions whose bundles are imported, by their public keys."""

import sqlalchemy as sa

from lifelong_core.entities.develop.knowledge import LOCAL, PUBLISHED, TrustedSigner
from lifelong_core.store.access.audit_log import write_audit
from lifelong_core.store.engine.clock import now
from lifelong_core.store.engine.columns import read_record
from lifelong_core.store.engine.statements import Repository
from lifelong_core.store.schema import tables
from lifelong_core.values.errors import ConflictError, InvalidInputError, NotFoundError
from lifelong_core.values.names import check_name

_signers = tables.trusted_signers


class TrustedSigners(Repository):
    """Adds, removes and lists trusted signers. Entries that came with their bundles stay when a signer is removed."""

    def list(self) -> list[TrustedSigner]:
        """All trusted signers by name."""
        with self._database.read() as connection:
            rows = connection.execute(sa.select(_signers).order_by(_signers.c.name))
            return [read_record(row, TrustedSigner) for row in rows]

    def add(self, name: str, public_key: str, *, actor: str) -> TrustedSigner:
        """Trust a signer: bundles that its key signed are imported under its name.

        Args:
            name: a legal name, other than `local`.
            public_key: 64 hexadecimal digits.
            actor: name for the audit log.

        Raises:
            InvalidInputError: name or key are not legal.
            ConflictError: there is a signer of this name, or with this key.
        """
        from lifelong_core.develop.knowledge.signing import check_public_key

        if check_name(name, field="name") in (LOCAL, PUBLISHED):
            raise InvalidInputError(
                f"{name!r} is not a signer: it stands for entries that were made here, or published.",
                field="name",
            )
        key = check_public_key(public_key.strip())
        with self._database.write() as connection:
            same = sa.or_(_signers.c.name == name, _signers.c.public_key == key)
            known = connection.execute(sa.select(_signers).where(same)).first()
            if known is not None:
                field = "name" if known.name == name else "public_key"
                raise ConflictError(
                    f"the signer {known.name} is trusted already, with the key {known.public_key[:16]}....",
                    field=field,
                    hint="Remove it first to change its name or key.",
                )
            values = {"name": name, "public_key": key, "added_at": now(), "added_by": actor}
            row = connection.execute(sa.insert(_signers).values(values).returning(_signers)).one()
            write_audit(connection, actor, "signers.add", name, {"public_key": key})
            return read_record(row, TrustedSigner)

    def remove(self, name: str, *, actor: str) -> TrustedSigner:
        """Stop to trust a signer: later bundles of its key are refused.

        Raises:
            NotFoundError: there is none of this name.
        """
        with self._database.write() as connection:
            removal = sa.delete(_signers).where(_signers.c.name == name).returning(_signers)
            row = connection.execute(removal).one_or_none()
            if row is None:
                raise NotFoundError(
                    f"there is no trusted signer {name[:80]!r}.",
                    field="name",
                    hint="List them: `lifelong knowledge signers`.",
                )
            removed = read_record(row, TrustedSigner)
            write_audit(connection, actor, "signers.remove", name, {"public_key": removed.public_key})
            return removed
