"""IP addresses in URLs, and whether they are of this machine."""

import ipaddress
import socket


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
