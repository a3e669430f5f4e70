"""Alembic migrations, from the first table on. `Store.migrate` runs them without an alembic.ini."""
