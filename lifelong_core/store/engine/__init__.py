"""Transactions on SQLite and PostgreSQL.

- `database`: engine, read and write transactions
- `errors`: translation of driver errors
- `columns`, `documents`: column types; documents as text
- `clock`, `leases`: the clock of the database; leases with fencing tokens
- `statements`, `deletion`: shared parts of statements; deletion in batches
"""
