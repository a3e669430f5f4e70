"""Masks passwords and tokens in texts: in URLs, connection strings and headers.

All log lines and all errors of the command line pass through `redact`, and all texts that may hold a URL or a message
of another library: error messages, settings, output of jobs.
"""

import re
from urllib.parse import unquote

MASK = "***"

# Possessive and bounded quantifiers: the time is linear in the length of a text.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,40}+)://([^\s\"'<>]++)")
_WEB = ("http", "https")
_OWN_TOKEN = re.compile(r"\bll_[A-Za-z0-9_-]{20,}+")
_AUTHORIZATION = re.compile(r"\b(bearer|basic)\s++[A-Za-z0-9+/=._~-]{6,}+", re.IGNORECASE)
_SECRET_NAME = re.compile(
    r"passw|passphrase|pwd|secret|token(?!s)|credential|signature|(?:^|[-_.])(?:sig|auth|sas|key)$"
    r"|(?:api|access|account|private|shared)[-_]?key|authorization",
    re.IGNORECASE,
)
_VALUE = r"""(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[^\s&;,"'<>()\[\]{}]++)"""
_ASSIGNED = re.compile(rf"(?<![\w.%+-])([\w.%+-]{{1,80}}+)(\s?=\s?)({_VALUE})")
"""`name=value`: in the query of a URL, in a connection string, as an argument."""
_QUOTED_NAME = re.compile(rf"""(["'])([\w.%+-]{{1,80}}+)(\1\s?:\s?)({_VALUE})""")
"""`"name": value`: in JSON, or in a printed dictionary."""


def redact(text: str) -> str:
    """The text with each secret masked.

    Secrets are the passwords of URLs, the values of parameters with secret names (`password`, `sslpassword`, `secret`,
    `token`, `sig`, ...), credentials of an Authorization header, and our own tokens. Where the end of a password is
    ambiguous, too much is masked rather than too little.

    Examples:
        >>> redact("postgresql://me:geheim@host/db?sslpassword=x&sslmode=require")
        'postgresql://me:***@host/db?sslpassword=***&sslmode=require'
        >>> redact("GET /v1/predict?token=abc&environment=clinic-a")
        'GET /v1/predict?token=***&environment=clinic-a'
        >>> redact("no artifacts at s3://bucket/folder: {'key': 'AKIA', 'secret': 'x'}")
        "no artifacts at s3://bucket/folder: {'key': ***, 'secret': ***}"
        >>> redact("http://127.0.0.1:3000/v1/admin/models/resnet@3 answered 500.")
        'http://127.0.0.1:3000/v1/admin/models/resnet@3 answered 500.'
    """
    if "://" in text:
        text = _URL.sub(_without_userinfo, text)
    if "=" in text:
        text = _ASSIGNED.sub(_without_assigned, text)
    if ":" in text:
        text = _QUOTED_NAME.sub(_without_quoted, text)
    return _AUTHORIZATION.sub(rf"\1 {MASK}", _OWN_TOKEN.sub(MASK, text))


def _without_userinfo(found: re.Match[str]) -> str:
    scheme, rest = found[1], found[2]
    end = _end_of_userinfo(scheme.lower(), rest)
    if end < 0:
        return found[0]
    user, colon, _ = rest[:end].partition(":")
    shown = f"{user}:{MASK}" if colon else user
    if scheme.lower() in _WEB and not colon:  # a token instead of a user name
        shown = MASK
    return f"{scheme}://{shown}{rest[end:]}"


def _end_of_userinfo(scheme: str, rest: str) -> int:
    """Index of the @ after name and password; -1: there is none.

    A password without percent-encoding may hold any character that ends it by the standard. Paths of web addresses may
    hold an @, so for them the standard applies, unless the text after the colon is not a port.
    """
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if scheme in _WEB:
        if "@" in authority:
            return authority.rindex("@")
        _, colon, port = authority.rpartition(":")
        return rest.rfind("@") if colon and not port.rstrip("]").isalnum() else -1
    before_query = rest.partition("?")[0]
    return before_query.rfind("@") if "@" in before_query else rest.rfind("@")


def _without_assigned(found: re.Match[str]) -> str:
    if not _SECRET_NAME.search(unquote(found[1])):
        return found[0]
    return f"{found[1]}{found[2]}{MASK}"


def _without_quoted(found: re.Match[str]) -> str:
    if not _SECRET_NAME.search(unquote(found[2])):
        return found[0]
    return f"{found[1]}{found[2]}{found[3]}{MASK}"
