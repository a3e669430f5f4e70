"""Addresses of clients, also behind proxies."""

import ipaddress
from functools import lru_cache

UNKNOWN = "unknown"
"""Stands for invalid text that a proxy sent instead of an address."""
_IPV6_PREFIX = 64
"""An internet provider gives each customer at least this many addresses."""

ANONYMOUS = "anonymous"
"""The actor of requests without a token."""


def network_of(address: str) -> str:
    """Return the owner of an address: for IPv6 the network of a customer. Other text is returned unchanged.

    Examples:
        >>> network_of("192.0.2.7"), network_of("2001:db8:0:7::12"), network_of("unknown")
        ('192.0.2.7', '2001:db8:0:7::/64', 'unknown')
    """
    try:
        parsed = _parsed(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    return str(ipaddress.ip_network((int(parsed), _IPV6_PREFIX), strict=False))


@lru_cache(maxsize=4096)
def normalised_address(text: str) -> str:
    """The usual form of an IP address: that of IPv4 where it is mapped to IPv6; `unknown` for other text."""
    try:
        return str(_parsed(text))
    except ValueError:
        return UNKNOWN


def _parsed(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text)
    # A dual-stack socket reports IPv4 addresses as mapped IPv6 addresses.
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
