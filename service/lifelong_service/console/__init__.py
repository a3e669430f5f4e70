"""Pages without scripts, their navigation, and the confirmation of their forms."""

from lifelong_service.console import (
    heads,
    jobs,
    labels,
    performance,
    predictions,
    proposals,
    runbooks,
    sessions,
    trainings,
    trials,
)
from lifelong_service.console.administration import audit_log, change_control, doctor, tokens
from lifelong_service.console.interview import forms as interview_forms
from lifelong_service.console.interview import interviews, results
from lifelong_service.console.knowledge import pages as knowledge_pages
from lifelong_service.console.models import models, validations
from lifelong_service.console.populations import cycle, fleet, population

ROUTERS = (
    fleet.router,
    population.router,
    cycle.router,
    interviews.router,
    interview_forms.router,
    results.router,
    trials.router,
    heads.router,
    performance.router,
    predictions.router,
    knowledge_pages.router,
    models.router,
    validations.router,
    trainings.router,
    jobs.router,
    proposals.router,
    labels.router,
    tokens.router,
    doctor.router,
    audit_log.router,
    change_control.router,
    runbooks.router,
    sessions.router,
    sessions.anything_else,  # last: it matches every remaining path
)
