"""The console: pages without scripts for interviews, results, knowledge base, proposed retrainings and audit log."""

from lifelong_service.console import audit_log, interview_forms, interviews, proposals, results, sessions
from lifelong_service.console.knowledge import pages as knowledge_pages

ROUTERS = (
    interviews.router,
    interview_forms.router,
    results.router,
    knowledge_pages.router,
    proposals.router,
    audit_log.router,
    sessions.router,
    sessions.anything_else,  # last: it matches every remaining path
)
