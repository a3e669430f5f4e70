"""IP addresses in URLs, and whether they are of this machine, of a network, or public."""

import ipaddress
import socket
from collections.abc import Sequence

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""Prefix of IPv4 addresses that a network translates (RFC 6052)."""


def host_and_port(host: str, port: int) -> str:
    """Host and port as a URL holds them: an IPv6 address in brackets (RFC 3986, section 3.2.2).

    Examples:
        >>> host_and_port("::1", 3000), host_and_port("10.0.0.7", 3000)
        ('[::1]:3000', '10.0.0.7:3000')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable_address(host: str) -> str:
    """Where this machine reaches a server that listens on `host`: a loopback address if that is every address.

    Examples:
        >>> reachable_address("0.0.0.0"), reachable_address("::"), reachable_address("10.0.0.7")
        ('127.0.0.1', '::1', '10.0.0.7')
    """
    address = ipaddress.ip_address(host)
    return host if not address.is_unspecified else "127.0.0.1" if address.version == 4 else "::1"


def is_this_machine(host: str) -> bool:
    """Whether a host of a URL is this machine: by its address, by its own name, or as localhost; names are not looked
    up."""
    name = host.lower().rstrip(".")
    if name in ("localhost", socket.gethostname().lower()) or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if address.is_loopback:
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def is_within(address: str, networks: Sequence[str]) -> bool:
    """Whether an address is in one of these networks.

    Examples:
        >>> is_within("10.1.2.3", ["10.0.0.0/8"]), is_within("::ffff:10.1.2.3", ["10.0.0.0/8"])
        (True, True)
    """
    reached = _reached(address)
    return any(reached in ipaddress.ip_network(network) for network in networks)


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet: not private, local, shared, multicast or reserved.

    Examples:
        >>> is_public("8.8.8.8"), is_public("169.254.169.254"), is_public("64:ff9b::a00:1"), is_public("fe80::1%eth0")
        (True, False, False, False)
    """
    reached = _reached(address)
    return reached.is_global and not reached.is_multicast


def _reached(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address that a packet reaches: the IPv4 address inside one of IPv6 that is mapped or translated."""
    given = ipaddress.ip_address(address)
    if given.version == 4:
        return given
    if given in _NAT64:
        return ipaddress.IPv4Address(given.packed[-4:])
    return given.ipv4_mapped or given.sixtofour or given
