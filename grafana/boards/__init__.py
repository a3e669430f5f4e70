"""The dashboards, one module each.

- `overview`: all populations: which one needs a person, and what happened
- `population`: one population: prevalence, evidence, the last cycle and why it did or did not swap
- `quality`: one population: performance, estimated and realised, against its targets
- `service`: the serving processes: requests, latency, queue, decoding, spool
- `develop`: jobs, trainings, trials, the knowledge base
"""

from typing import Final

from grafana.boards import develop, overview, population, quality, service
from grafana.dashboard import Board

BOARDS: Final[tuple[Board, ...]] = (
    overview.BOARD,
    population.BOARD,
    quality.BOARD,
    service.BOARD,
    develop.BOARD,
)
