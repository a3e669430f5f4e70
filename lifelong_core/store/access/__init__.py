"""Who may do what, and who did what.

- `tokens`, `token_rows`: bearer tokens
- `console_sessions`: logins to the console
- `audit_log`, `audit_chain`, `audit_anchor`: the audit log, its hash chain, and its anchor outside the database
"""
