"""Access control and the audit log.

- `tokens`: issues, rotates and revokes tokens; `token_lookup`: finds and checks them
- `console_sessions`: logins to the console
- `audit_log`, `audit_chain`: the audit log, its hash chain, and its anchor outside the database
"""
