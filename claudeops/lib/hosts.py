"""Tell the machines of the house from those of others, by their names and addresses. Pure."""

from __future__ import annotations

import ipaddress

LOCAL_ENDINGS = (
    *(".local", ".lan", ".home", ".internal", ".intranet", ".localdomain", ".home.arpa", ".corp", ".test"),
    ".localhost",
)
"""How the name of a host ends that no public name server knows (RFC 6762, RFC 8375, and what people use)."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_local(host: str) -> bool:
    """Whether a host is a machine of the house: loopback, a private address, a name without a public domain."""
    if is_loopback(host):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_private
    except ValueError:
        return host != "" and host.isascii() and ("." not in host or host.lower().endswith(LOCAL_ENDINGS))
