"""What the service is told at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.errors import UserError
from mm2slo_report.rendering.references import References

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_report.web.tokens import Token

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Tokens(Protocol):
    """Who is let in; `token_file.TokenFile` is one."""

    @property
    def good(self) -> tuple[Token, ...]:
        """The tokens that let in now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Who may ask, under which names, and how often.

    `hosts` are names in the Host header, in small letters and without a port; `any_address` lets
    IP addresses be such names as well, as it must where every interface is listened on.
    """

    version: str
    tokens: Tokens | None = None
    """None: everyone who reaches the service may read, and nobody may write."""
    hosts: frozenset[str] = LOOPBACK
    any_address: bool = False
    tls: bool = False
    reports_per_minute: int = 60
    references: References = field(default_factory=References)
    kept_seconds: float = 30.0


def is_loopback(host: str) -> bool:
    """Whether *host* is this machine alone; the empty host is every interface."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def refuse_open(host: str, tokens: Tokens | None) -> None:
    """Raise UserError where everyone on the network could ask without a token."""
    if tokens is None and not is_loopback(host):
        raise UserError(
            f"report.listen is {host or 'every interface'!r}, and without tokens everyone who "
            "reaches it could read: set report.tokens_file, or listen on 127.0.0.1"
        )


def hosts_of(listen: str, named: Iterable[str], own_names: Iterable[str]) -> frozenset[str]:
    """The names that the Host header may have; *own_names* are this machine's."""
    found = {*LOOPBACK, *(each.lower() for each in named)}
    if listen and not is_loopback(listen):
        found.add(f"[{listen.lower()}]" if ":" in listen else listen.lower())
    if not is_loopback(listen):
        found.update(each.lower() for each in own_names)
    return frozenset(found)


def host_name(header: str) -> str:
    """The name in a Host header: small letters, no port, IPv6 in brackets."""
    text = header.strip().lower()
    if text.startswith("["):
        return "".join(text.partition("]")[:2])
    return text.partition(":")[0].removesuffix(".")


def is_address(name: str) -> bool:
    """Whether *name* is an IP address, in brackets if it is of version 6."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
