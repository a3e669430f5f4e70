"""Script of Alembic: migrates over the connection and transaction that `migration` opened."""

from alembic import context

from lifelong_core.store.schema.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
