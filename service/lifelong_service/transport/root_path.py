"""Below a path of a reverse proxy: what a client sees has the prefix, the application knows its own paths only."""

import re

from starlette.types import Message, Scope, Send

_LINK = re.compile(r'((?:href|action|src|hx-get)="|http-equiv="refresh" content="\d+; url=)/')
"""A link within the site. A value of a template cannot forge one: its quotes are escaped."""


def below(root_path: str, html: str) -> str:
    """Return a page whose links have the prefix.

    Examples:
        >>> below("/lifelong", '<a href="/console">')
        '<a href="/lifelong/console">'
    """
    return _LINK.sub(rf"\g<1>{root_path}/", html) if root_path else html


def own_path(root_path: str, scope: Scope) -> Scope:
    """Return the request without the prefix, where the proxy left it there."""
    path = scope["path"]
    return (
        {**scope, "path": path[len(root_path) :] or "/"} if f"{path}/".startswith(f"{root_path}/") else scope
    )


def send_below(root_path: str, send: Send) -> Send:
    """Return a `send` that puts the prefix before the paths of redirects and cookies."""
    prefix = root_path.encode()

    async def prefixed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                (name, _prefixed(prefix, name, value)) for name, value in message["headers"]
            ]
        await send(message)

    return prefixed


def _prefixed(prefix: bytes, name: bytes, value: bytes) -> bytes:
    if name == b"location" and value.startswith(b"/"):
        return prefix + value
    return value.replace(b"; Path=/", b"; Path=" + prefix + b"/") if name == b"set-cookie" else value
