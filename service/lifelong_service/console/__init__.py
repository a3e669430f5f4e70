"""The console: HTML pages without scripts for interviews, their results and the audit log."""

from lifelong_service.console import audit_log, interview_forms, interviews, results, sessions

ROUTERS = (
    interviews.router,
    interview_forms.router,
    results.router,
    audit_log.router,
    sessions.router,
    sessions.anything_else,  # last: it matches every remaining path
)
