"""Transactions on SQLite and PostgreSQL.

- `database`: engine, read and write transactions
- `errors`: errors of drivers as errors of the product
- `columns`, `documents`: column types; documents as text
- `clock`, `leases`: the clock of the database; one holder at a time
- `statements`, `deletion`: statements that several tables need; deletion in batches
"""
