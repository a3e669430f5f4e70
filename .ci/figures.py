"""Size of the code base beside the committed figures: `python .ci/figures.py [TIMES]`; `--write` writes new ones.

Whoever exceeds a size raises it in the same commit, and says why. TIMES is a file with the second at which each stage
of CI began. Times depend on the machine: a longer one is marked, and does not fail.
"""

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median

PRODUCT = ("lifelong/", "lifelong_core/", "service/", "monitor/")
FIGURES = Path(__file__).with_name("figures.json")
LONGER = 1.2
"""Factor from which a time is marked."""


def measure() -> dict[str, int]:
    """Lines and files of product and tests, modules of the largest folder, and the median file of the product."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], capture_output=True, text=True, check=True
    ).stdout.split()
    lines = {name: len(Path(name).read_text(encoding="utf-8").splitlines()) for name in listed}
    product = {name: count for name, count in lines.items() if name.startswith(PRODUCT)}
    tests = {name: count for name, count in lines.items() if name.startswith("tests/")}
    folders = Counter(str(Path(name).parent) for name in product if Path(name).name != "__init__.py")
    return {
        "product_lines": sum(product.values()),
        "product_files": len(product),
        "test_lines": sum(tests.values()),
        "largest_folder": max(folders.values()),
        "median_file": int(median(product.values())),
    }


def main() -> int:
    """Print the figures; return 1 if a size is larger than the committed one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="write the figures instead of comparing with them"
    )
    parser.add_argument("times", type=Path, nargs="?")
    options = parser.parse_args()
    found = measure()
    seconds = stages(options.times) if options.times else {}
    if options.write:
        known = json.loads(FIGURES.read_text(encoding="utf-8"))
        written = known | found | ({"seconds": seconds} if seconds else {})
        FIGURES.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    known = json.loads(FIGURES.read_text(encoding="utf-8"))
    exceeded = [name for name in found if name != "median_file" and found[name] > known[name]]
    for name, value in found.items():
        mark = " EXCEEDED" if name in exceeded else ""
        print(f"{name.replace('_', ' '):16} {value:8,} (committed: {known[name]:,}){mark}")
    for name, value in seconds.items():
        committed = known["seconds"].get(name)
        mark = " LONGER" if committed is not None and value > LONGER * committed else ""
        print(f"{value:6} s (committed: {'none' if committed is None else f'{committed} s'})  {name}{mark}")
    return bool(exceeded)


def stages(times: Path) -> dict[str, int]:
    """Seconds of each stage, and of all; each line of the file has the second at which a stage began, and its name."""
    lines = [line.split(" ", 1) for line in times.read_text(encoding="utf-8").splitlines()]
    begun = [int(second) for second, _ in lines]
    found = {name: after - begin for (_, name), begin, after in zip(lines, begun, begun[1:], strict=False)}
    return found | {"all stages": begun[-1]}


if __name__ == "__main__":
    sys.exit(main())
