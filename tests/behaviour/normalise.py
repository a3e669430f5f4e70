"""Replaces what differs between two recordings of the same code: ids, times, secrets, hashes under a key, durations."""

import re
from collections.abc import Mapping

UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_NUMBERED = {
    "ID": rf"\b{UUID}\b|\b0[0-9a-f]{{7}}-[0-9a-f]{{4}}(?:-[0-9a-f]{{0,4}})?\b",
    "SECRET": r"\bll_[A-Za-z0-9_-]{20,}",
    "GROUP": r"\b[0-9a-f]{32}\b",
}
"""Patterns by name of the placeholder; equal texts have one number."""
_PLAIN = {
    r"20[2-4]\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d| UTC)?": "<TIME>",
    r"20[2-4]\d-\d\d-\d\d": "<DATE>",
    r"\d{1,2} (?:[A-Z][a-z]+) 20[2-4]\d, \d\d:\d\d UTC": "<TIME>",
    rf'("seconds_since_swap": ?|"process": ?|"seconds": ?|process +|<HOST>/){NUMBER}': r"\1<NUMBER>",
    r"[\d,]+ MB free": "<NUMBER> MB free",
    r"\b\d+:[0-9a-f]{64}": "<ANCHOR>",
    r'(previous_digest"?: "?)[0-9a-f]{64}("?,?\s+"?digest"?: "?)[0-9a-f]{64}': r"\1<CHAIN>\2<CHAIN>",
    r'("inputs": ")[0-9a-f]{64}': r"\1<DIGEST-OF-IDS>",
    r'title="digest [0-9a-f]{12}"': 'title="digest <CHAIN>"',
    r'(log_position"?: |commit_order: )\d+': r"\1<POSITION>",
    r'("seed": )\d{6,}': r"\1<SEED>",
    r'("new_digest": ")[0-9a-f]{64}': r"\1<DIGEST-OF-IDS>",
    r'^(lifelong_cycles_total\{.*outcome="skip".*\} )\S+$': r"\1<VALUE>",
    r"^(lifelong_jobs_waiting )\S+$": r"\1<VALUE>",
    r"^lifelong_job_waiting_since_timestamp_seconds\{.*\n": "",
    r"expires=\w{3}, [^;]+": "expires=<TIME>",
    r"lifelong_console=[\w-]+": "lifelong_console=<SESSION>",
    r'"last_used_at": (?:null|"<TIME>")': '"last_used_at": <TIME>',
    r"\n *last used at .*": "",
    r'([ML]|\bc?x=")-?\d+\.\d': r"\1<X>",
    r"(<[A-Z]+(?:-\d+)?>) {2,}": r"\1  ",
}
"""Replacements by pattern: times, durations, chained digests, and places on the time axis of a chart."""


_OF_ITEMS = {
    r"advise|plan|labels_\{id\}": {
        r"(?<![\w.])\d\.\d+(?:e-\d+)?": "<DRAWN>",
        r'("decision": )\d': r"\1<DRAWN>",
        r"<ID-\d+>": "<ID>",
        r"^(<ID>,.*,)\d(,<DRAWN>,\d+,<TIME>)$": r"\1<DRAWN>\2",
    },
    r"monitors": {
        r'"outcome": "[a-z ]+",(\s+)"reason": (?:"[^"]*"|<REASON>)': r'"outcome": <OUTCOME>,\1"reason": <REASON>'
    },
}
"""By pattern of the item: plans of labelling draw predictions with a seed of their own, and what a monitor did last in
a population depends on its ticks."""


def normalise(text: str, literal: Mapping[str, str], item: str = "") -> str:
    """The text with placeholders, which are numbered in the order of their first appearance.

    Args:
        text: of one item.
        literal: placeholders by text, such as the data directory; the longest text is replaced first.
        item: its name.
    """
    for old in sorted(literal, key=len, reverse=True):
        # A port or the name of the host is no part of a longer number, secret or word.
        whole = rf"(?<![\w.-]){re.escape(old)}(?![\w-])"
        text = text.replace(old, literal[old]) if "/" in old else re.sub(whole, literal[old], text)
    for name, pattern in _NUMBERED.items():
        numbers: dict[str, int] = {}
        text = re.sub(pattern, lambda m, n=numbers, k=name: f"<{k}-{n.setdefault(m[0], len(n) + 1)}>", text)
    replacements = dict(_PLAIN)
    for pattern, more in _OF_ITEMS.items():
        replacements |= more if re.search(pattern, item) else {}
    for pattern, placeholder in replacements.items():
        text = re.sub(pattern, placeholder, text, flags=re.MULTILINE)
    return text
