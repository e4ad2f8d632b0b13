"""The address of a request's caller: the peer's, or the one that a declared proxy reports. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlrun.errors import UsageError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED = b"x-forwarded-for"
# Maximum number of addresses to read. Each proxy adds one, so a longer list is an attack.
MOST_HOPS = 32


@dataclass(frozen=True, slots=True)
class Proxies:
    """The trusted proxies. `X-Forwarded-For` from any other peer is ignored, since callers can forge it."""

    networks: tuple[Network, ...] = ()

    @staticmethod
    def of(texts: Iterable[str]) -> Proxies:
        """Return the proxies of addresses and networks. Raises: UsageError if a text is neither.

        >>> Proxies.of(["127.0.0.1"]).address("127.0.0.1", [(b"x-forwarded-for", b"6.6.6.6, 9.9.9.9")])
        '9.9.9.9'
        """
        found = []
        for text in texts:
            try:
                found.append(ipaddress.ip_network(text.strip("[]"), strict=False))
            except ValueError:
                raise UsageError(
                    f"--trusted-proxy {text} is no address and no network, such as 127.0.0.1 or 10.0.0.0/8"
                ) from None
        return Proxies(tuple(found))

    def trusts(self, address: str) -> bool:
        """Return whether an address belongs to a declared proxy."""
        if not self.networks:
            return False
        found = _read(address)
        return found is not None and any(found in network for network in self.networks)

    def address(self, peer: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """Return the caller's address: the last one that isn't a declared proxy, as each proxy appends its peer."""
        if not self.trusts(peer):
            return peer
        said = b",".join(value for name, value in headers if name == FORWARDED)
        caller = peer
        for hop in reversed(said.split(b",")[-MOST_HOPS:]):
            address = _read(hop.decode("latin-1"))
            if address is None:
                return caller
            caller = str(address)
            if not self.trusts(caller):
                return caller
        return caller


def _read(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return an address that may have a port; None if it is invalid. An IPv4-mapped IPv6 address becomes IPv4."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
