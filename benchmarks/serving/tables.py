"""Tables of the cases."""

from typing import Any


def show_servers(title: str, case: dict[str, Any]) -> None:
    """Print medians of each server and what ours reaches of it."""
    print(f"\n{title}, medians of {case['rounds']}")
    print("| server | answers/s | p50 ms | p99 ms | max ms | refused | faults | processor us | ours / this |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, one in case["servers"].items():
        print(
            f"| {name} | {one['per_second']:,.1f} | {one['p50_ms']:.2f} | {one['p99_ms']:.2f} |"
            f" {one['maximum_ms']:.1f} | {one['refused']:.0f} | {one['faults']:.0f} |"
            f" {one['processor_microseconds']:,.0f} | {spread(case['ours_to'].get(name))} |"
        )
    for name, rate in case.get("bare", {}).items():
        print(f"| {name} | {rate:,.1f} | | | | | | | {spread(case['ours_to'][name])} |")
    print("", end="", flush=True)


def spread(values: list[float] | None) -> str:
    """Median, smallest and largest value; None: nothing."""
    if values is None:
        return ""
    median, least, most = values
    return f"{median:.2f} ({least:.2f} to {most:.2f})"
