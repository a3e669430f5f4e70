"""Pages for people, in any browser and without scripts: the interview that finds metrics, and the audit log."""

from lifelong_service.console import audit_log, interview_forms, interviews, results, sessions

ROUTERS = (
    interviews.router,
    interview_forms.router,
    results.router,
    audit_log.router,
    sessions.router,
    sessions.anything_else,  # last: it answers what nobody else does
)
