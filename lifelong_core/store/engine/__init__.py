"""Transactions on SQLite and PostgreSQL.

- `database`, `kept_connection`: engine, read and write transactions; a connection that is used again
- `errors`: translation of driver errors
- `columns`, `documents`: column types; documents as text
- `clock`, `leases`: the clock of the database; leases with fencing tokens
- `statements`, `deletion`: shared parts of statements; deletion in batches
"""
