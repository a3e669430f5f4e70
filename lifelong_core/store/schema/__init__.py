"""Tables and migrations.

- `tables`: all tables, as declared
- `version`: does the database fit this version of the product?
- `migration`, `migrations`: upgrade and downgrade by Alembic
"""
