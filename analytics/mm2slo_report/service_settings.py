"""Settings of the report service, and the links in and to its reports.

Loads no web framework: the command line checks settings before it starts a server.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import quote, urlencode

from mm2slo_core.link_targets import search_url
from mm2slo_core.reporting.report_entry import Incident, WindowKind
from mm2slo_core.topology import Flow
from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from mm2slo_core.reporting.slo_report import Report
    from mm2slo_report.access_tokens import AccessToken


LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Tokens(Protocol):
    """Source of tokens, such as `token_file.TokenFile`."""

    @property
    def valid(self) -> tuple[AccessToken, ...]:
        """Tokens that currently grant access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """URLs without a trailing slash.

    `service` is the external URL of this service; empty makes links relative, None omits
    them, as for a file that is passed on.
    """

    service: str | None = ""
    dashboard: str | None = None
    """Grafana."""
    runbook: str | None = None
    prometheus: str | None = None
    splunk: str | None = None
    """Splunk Web."""

    def logs_url(self, flow: Flow, incident: Incident) -> str | None:
        """The search of the flow's log events during the incident."""
        if self.splunk is None:
            return None
        return search_url(
            self.splunk,
            quote(flow.label, safe=""),
            earliest=str(incident.start // 1000),
            latest=str(-(-incident.end // 1000)),
        )


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


_LONGEST_URL: Final = 1_000
_UNSAFE: Final = str.maketrans({"|": "%7C", "<": "%3C", ">": "%3E", " ": "%20", "`": "%60"})


@dataclass(frozen=True, slots=True)
class ReportLinks:
    """Links to the report service at its public address `base`; None: no links."""

    base: str | None = None

    def report_url(self, report: Report) -> str | None:
        """The page that shows *report* with these figures, at any later time."""
        if self.base is None:
            return None
        at = datetime.fromtimestamp(report.as_of / 1000, UTC)
        query = {"format": "html", "at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
        if report.window is not None:
            query["period"] = report.window.name
            if report.window.kind is WindowKind.CALENDAR and report.window.end < report.as_of:
                # A finished period does not change.
                del query["at"]
        url = f"{self.base.rstrip('/')}/slo/report?{urlencode(query)}".translate(_UNSAFE)
        return url if len(url) <= _LONGEST_URL else None
