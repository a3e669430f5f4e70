"""The navigation of all pages: groups of links, each with the scope that its page needs."""

from dataclasses import dataclass

from lifelong_core.entities.access import Scope, Token


@dataclass(frozen=True)
class Link:
    """A page of the navigation."""

    label: str
    path: str
    scope: Scope = Scope.READ
    also: tuple[str, ...] = ()
    """beginnings of the paths of further pages below this link"""

    def leads_to(self, path: str) -> bool:
        """Whether the page at `path` is this page or below it."""
        below = self.also if self.path == START else (*self.also, self.path)
        return path == self.path or path.startswith(tuple(f"{one}/" for one in below))


START = "/console"
LINKS = (
    (
        Link("Fleet", START, also=("/console/populations", "/console/cycles", "/console/heads")),
        Link("Proposals", "/console/proposals"),
        Link("Predictions", "/console/predictions"),
        Link("Performance", "/console/performance"),
        Link("Labels", "/console/labels"),
    ),
    (
        Link("Tasks", "/console/tasks"),
        Link("Models", "/console/models"),
        Link("Validations", "/console/validations"),
        Link("Metrics", "/console/start"),
        Link("Interviews", "/console/interviews"),
        Link("Trainings", "/console/trainings"),
        Link("Knowledge", "/console/knowledge"),
    ),
    (
        Link("Jobs", "/console/jobs"),
        Link("Audit log", "/console/audit"),
        Link("Tokens", "/console/tokens"),
        Link("Doctor", "/console/doctor"),
        Link("Runbooks", "/console/runbooks"),
    ),
)
"""Groups of links: what is served, how it is developed, the installation. A new page gets a line here."""


def links_for(token: Token) -> list[list[Link]]:
    """The links whose pages a token may see, in their groups."""
    groups = [[link for link in group if token.allows(link.scope)] for group in LINKS]
    return [group for group in groups if group]
