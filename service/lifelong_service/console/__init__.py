"""Pages for people: the interview that finds the metrics for a problem, in any browser and without scripts."""

from lifelong_service.console import answering, interviews, results, sessions

ROUTERS = (
    interviews.router,
    answering.router,
    results.router,
    sessions.router,
    sessions.anything_else,  # last: it answers what nobody else does
)
