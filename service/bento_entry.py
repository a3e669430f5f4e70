"""Entry point of a bento: its sources are not installed, so the packages are imported by path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lifelong_service.service import Lifelong  # after the path

__all__ = ["Lifelong"]
