"""Size of the code base beside the committed figures: `python .ci/figures.py [TIMES]`; `--write` writes new ones.

Whoever exceeds a figure raises it in the same commit, and says why. TIMES is a file with the second at which each
stage of CI began; times depend on the machine, so they are only printed.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from statistics import median

PRODUCT = ("lifelong/", "lifelong_core/", "service/", "monitor/")
FIGURES = Path(__file__).with_name("figures.json")


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
    """Print the figures; return 1 if one is larger than the committed one."""
    found = measure()
    if "--write" in sys.argv:
        known = json.loads(FIGURES.read_text(encoding="utf-8"))
        FIGURES.write_text(json.dumps(known | found, indent=2) + "\n", encoding="utf-8")
    known = json.loads(FIGURES.read_text(encoding="utf-8"))
    exceeded = [name for name in found if name != "median_file" and found[name] > known[name]]
    for name, value in found.items():
        print(
            f"{name.replace('_', ' '):16} {value:8,} (committed: {known[name]:,}){' EXCEEDED' * (name in exceeded)}"
        )
    for name, seconds in stages(Path(sys.argv[-1])) if sys.argv[1:] and "--write" not in sys.argv else ():
        print(f"{seconds:6} s (committed: {known['seconds'].get(name, 0)} s)  {name}")
    return bool(exceeded)


def stages(times: Path) -> list[tuple[str, int]]:
    """Name and seconds of each stage; each line of the file has the second at which a stage began, and its name."""
    lines = [line.split(" ", 1) for line in times.read_text(encoding="utf-8").splitlines()]
    begun = [int(second) for second, _ in lines]
    return [
        (name, after - second)
        for (_, name), second, after in zip(lines, begun, [*begun[1:], begun[-1]], strict=True)
    ]


if __name__ == "__main__":
    sys.exit(main())
