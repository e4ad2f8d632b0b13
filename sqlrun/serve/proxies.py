"""Where a request comes from: the peer, or whom a declared proxy names. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlrun.errors import UsageError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
FORWARDED = b"x-forwarded-for"
# A proxy adds one; whoever sends more wants something else.
MOST_HOPS = 32


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies whose `X-Forwarded-For` is believed; anybody else's is a caller's own invention."""

    networks: tuple[Network, ...] = ()

    @staticmethod
    def of(texts: Iterable[str]) -> Proxies:
        """Read addresses and networks. Raises: UsageError.

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
        """Return whether an address is that of a declared proxy."""
        if not self.networks:
            return False
        found = _read(address)
        return found is not None and any(found in network for network in self.networks)

    def address(self, peer: str, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """Return who has sent a request: the last address that no declared proxy has; each adds its peer behind."""
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
    """Read an address, with or without a port; an IPv4 address as IPv6 writes it is the same one."""
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
