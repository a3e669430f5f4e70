"""Access control and the audit log.

- `tokens`, `token_lookup`: bearer tokens
- `console_sessions`: logins to the console
- `audit_log`, `audit_chain`, `audit_anchor`: the audit log, its hash chain, and its anchor outside the database
- `records`, `rows`: value types, and their construction from rows
"""
