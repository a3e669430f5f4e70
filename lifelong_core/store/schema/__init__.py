"""Tables and migrations.

- `tables`: all tables, as declared
- `version`: check that the database fits this version of the product
- `migration`, `migrations`: creation and upgrades by Alembic
"""
