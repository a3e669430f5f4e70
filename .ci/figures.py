"""Size of the code base, compared with the committed figures: `python .ci/figures.py`; `--write` commits new ones.

Whoever exceeds a figure raises it in the same commit, and says why.
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
        FIGURES.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    known = json.loads(FIGURES.read_text(encoding="utf-8"))
    exceeded = [name for name in found if name != "median_file" and found[name] > known[name]]
    for name, value in found.items():
        print(
            f"{name.replace('_', ' '):16} {value:8,} (committed: {known[name]:,}){' EXCEEDED' * (name in exceeded)}"
        )
    return bool(exceeded)


if __name__ == "__main__":
    sys.exit(main())
