"""Settings of the report service."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol

from mm2slo_core.user_errors import UserError
from mm2slo_report.rendering.references import References

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mm2slo_report.web.tokens import Token

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Tokens(Protocol):
    """Source of tokens, such as `token_file.TokenFile`."""

    @property
    def valid(self) -> tuple[Token, ...]:
        """Tokens that currently grant access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Access control, rate limit and links.

    `hosts` are the accepted Host header names, in lower case and without a port; `any_address`
    accepts every IP address as well, which listening on all interfaces needs.
    """

    version: str
    tokens: Tokens | None = None
    """None: every client may read, none may write."""
    hosts: frozenset[str] = LOOPBACK
    any_address: bool = False
    tls: bool = False
    reports_per_minute: int = 60
    references: References = field(default_factory=References)
    cache_seconds: float = 30.0


def is_loopback(host: str) -> bool:
    """Whether *host* is a loopback address; the empty host is every interface."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def require_tokens_or_loopback(host: str, tokens: Tokens | None) -> None:
    """Raise UserError if clients on the network could read without a token."""
    if tokens is None and not is_loopback(host):
        where = repr(host) if host else "every interface"
        raise UserError(
            f"report.listen is {where} and no tokens are configured, so any client on the network "
            "could read: set report.tokens_file, or listen on 127.0.0.1"
        )


def allowed_hosts(listen: str, named: Iterable[str], own_names: Iterable[str]) -> frozenset[str]:
    """Host header names to accept; *own_names* are those of this machine."""
    found = {*LOOPBACK, *(each.lower() for each in named)}
    if listen and not is_loopback(listen):
        found.add(f"[{listen.lower()}]" if ":" in listen else listen.lower())
    if not is_loopback(listen):
        found.update(each.lower() for each in own_names)
    return frozenset(found)


def host_name(header: str) -> str:
    """The name in a Host header: lower case, no port, IPv6 in brackets."""
    text = header.strip().lower()
    if text.startswith("["):
        return "".join(text.partition("]")[:2])
    return text.partition(":")[0].removesuffix(".")


def is_address(name: str) -> bool:
    """Whether *name* is an IP address; IPv6 in brackets."""
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
