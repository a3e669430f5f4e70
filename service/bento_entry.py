"""Where a bento starts: in its folder of sources nothing is installed, so the packages are found by path."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from lifelong_service.service import Lifelong  # after the path

__all__ = ["Lifelong"]
