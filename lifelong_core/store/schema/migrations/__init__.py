"""Alembic migrations, from the first table on. `Store.migrate` runs them; nobody needs an alembic.ini."""
