"""Removes passwords, tokens and rows of numbers from the last output of a crashed job."""

import re
from collections.abc import Mapping
from urllib.parse import unquote

from lifelong_core.runtime.redaction import MASK, redact

LONGEST = 1800
"""Characters that are kept, the last ones; of 2000 that a job's error may take."""
_FRAGMENT = 200
"""A first line that was cut is left out, if no more than so many characters of it are left."""
_SHORTEST_SECRET = 6
"""Shorter values are found in any text."""

# Possessive throughout: whatever a job says, the time is linear in its length.
_NUMBER = r"[-+]?+(?:\d++(?:\.\d*+)?+|\.\d++|nan|inf)(?:[eE][-+]?+\d++)?+"
_BETWEEN = r"(?>[\s,;|\[\](){}]|array\(|np\.\w++\()++"
_ROW = re.compile(rf"(?<![\w.]){_NUMBER}(?:{_BETWEEN}{_NUMBER}){{2,}}(?![\w.])")
"""Three numbers and more beside each other: logits, probabilities, labels."""
_PASSWORD = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_SECRET_NAME = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)


def last_lines(text: str, environment: Mapping[str, str]) -> str:
    """The last lines of a text, at most `LONGEST` characters, without secrets and without rows of numbers.

    Args:
        text: what was said.
        environment: variables of the process; a variable whose name contains KEY, TOKEN or the like is secret.

    Examples:
        >>> last_lines("cannot open postgresql://me:geheim@host/db", {})
        'cannot open postgresql://me:***@host/db'
        >>> last_lines("expected one class, got [[0.5, -1.25], [3, 4e-2]] in row 3", {})
        'expected one class, got [[...]] in row 3'
        >>> last_lines("no such user: hunter22", {"PGPASSWORD": "hunter22"})
        'no such user: ***'
    """
    for secret in sorted(_secrets(environment), key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _ROW.sub("...", redact(text)).strip()
    if len(text) <= LONGEST:
        return text
    kept = text[-LONGEST:]
    return kept[kept.find("\n", 0, _FRAGMENT) + 1 :]


def _secrets(environment: Mapping[str, str]) -> set[str]:
    named = {value for name, value in environment.items() if _SECRET_NAME.search(name)}
    in_addresses = {unquote(found) for value in environment.values() for found in _PASSWORD.findall(value)}
    return {secret for secret in named | in_addresses if len(secret) >= _SHORTEST_SECRET}
