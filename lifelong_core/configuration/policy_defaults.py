"""Choices and defaults of an adaptation policy, shared by `AdaptationPolicy` and the settings.

They have a module of their own because the settings load without numpy.
"""

from typing import Final, Literal, TypeAlias, get_args

Mode: TypeAlias = Literal["auto", "propose", "shadow"]
OnViolation: TypeAlias = Literal["refuse", "report"]
OnUnusualTraffic: TypeAlias = Literal["report", "propose"]

MODES: tuple[Mode, ...] = get_args(Mode)
ON_VIOLATION: tuple[OnViolation, ...] = get_args(OnViolation)
ON_UNUSUAL_TRAFFIC: tuple[OnUnusualTraffic, ...] = get_args(OnUnusualTraffic)

LARGEST_STEP: Final = 2
"""Largest L1 distance of two prevalences: a limit of this size has no effect."""
MOST_LOOKS: Final = 1e12
"""Largest average run length: the evidence is capped there (`evidence.LARGEST_LOG_CAPITAL`)."""

MINIMUM_SAMPLES: Final = 200
LEVEL: Final = 0.01
AVERAGE_RUN_LENGTH: Final = 175_200
TOLERANCE: Final = 0.01
CHANGE_LEVEL: Final = 0.005
ASSUMPTION_LEVEL: Final = 0.01
ASSUMPTION_VIOLATED: Final[OnViolation] = "refuse"
CONFIDENCE: Final = 0.95
MINIMUM_GAIN: Final = 0.005
MINIMUM_PROBABILITY_GAIN: Final = 0.002
MAXIMUM_STEP: Final = LARGEST_STEP
COOL_DOWN_SECONDS: Final = 0
HYSTERESIS: Final = 1
MODE: Final[Mode] = "auto"
POOLING: Final = False
LABELLED_EVIDENCE: Final = False
UNUSUAL_TRAFFIC: Final[OnUnusualTraffic] = "propose"
