"""Clusters and flows for mm2slo.yaml, from MirrorMaker 2's own configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.config_layers import BaseConfig, own_keys
from mm2slo_core.config.config_problems import Path, Problem
from mm2slo_core.mm2_config.findings import Finding, Origin, Severity
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.java_security import read_security
from mm2slo_core.mm2_config.provider_references import MirrorFiles, resolve_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mm2slo_core.mm2_config.mirror_setup import (
        MirrorCluster,
        MirrorFlow,
        MirrorSetup,
        Setting,
        Settings,
    )

_SERVERS: Final = "bootstrap.servers"
# Settings of connectors and workers that do not matter to flows and may refer to secrets.
_NOT_OF_FLOWS: Final = re.compile(
    r"bootstrap\.servers$|(?:^|\.)(?:sasl|ssl)\.|^(?:transforms|predicates)\.|converter"
)
# Fields whose values are checked against other fields and flows, so that their lines are needed.
_CHECKED_LATER: Final[dict[Path, str]] = {
    ("policy", "separator"): "replication.policy.separator",
    ("offset_syncs_location",): "offset-syncs.topic.location",
}


def config_problem(finding: Finding) -> Problem:
    """*finding* as a problem in the report of a configuration."""
    what, origin = f"{finding.what}; {finding.why}", finding.origin
    return Problem("", what, None, finding.action, origin.line, file=origin.file)


def build_base(
    setups: Sequence[MirrorSetup],
    files: MirrorFiles,
    own: Mapping[str, object],
    kafka_version: str | None = None,
) -> tuple[BaseConfig, tuple[Finding, ...]]:
    """Combine *setups*; returns their errors as problems, and their other findings.

    *own* is the content of mm2slo.yaml: what it replaces is neither resolved nor read.
    """
    base, findings = combine_setups(setups, files, own, kafka_version)
    errors = tuple(each for each in findings if each.severity is Severity.ERROR)
    return (
        replace(base, problems=tuple(map(config_problem, errors))),
        tuple(each for each in findings if each not in errors),
    )


def combine_setups(
    setups: Sequence[MirrorSetup],
    files: MirrorFiles,
    own: Mapping[str, object],
    kafka_version: str | None = None,
) -> tuple[BaseConfig, tuple[Finding, ...]]:
    """As `build_base`, with errors among the findings."""
    builder = _Builder(files, own)
    for setup in setups:
        builder.add(setup, kafka_version or setup.kafka_version)
    builder.report_principals()
    is_complete = all(
        each.severity is not Severity.ERROR for setup in setups for each in setup.findings
    )
    base = BaseConfig(builder.clusters, builder.flows, builder.origins, is_complete=is_complete)
    return base, tuple(dict.fromkeys(builder.findings))


@dataclass(slots=True)
class _Builder:
    files: MirrorFiles
    own: Mapping[str, object]
    clusters: dict[str, dict[str, object]] = field(default_factory=dict)
    flows: dict[str, dict[str, object]] = field(default_factory=dict)
    origins: dict[Path, tuple[str, int | None]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    principals: dict[str, Origin] = field(default_factory=dict)

    def add(self, setup: MirrorSetup, kafka_version: str | None) -> None:
        self.findings += setup.findings
        flows = setup.enabled_flows
        used = {alias for each in flows for alias in (each.flow.source, each.flow.target)}
        for alias, cluster in setup.clusters.items():
            if alias in used or own_keys(self.own, "clusters", alias):
                self._add_cluster(cluster, setup)
        by_flow = {each.flow: each for each in setup.flows}
        for flow in flows:
            self._add_flow(flow, by_flow.get(flow.flow.reverse), setup, kafka_version)

    def report_principals(self) -> None:
        """Recommend an own principal, once for all clusters."""
        if self.principals:
            finding = Finding(
                "own-principal", Severity.WARNING, next(iter(self.principals.values())),
                f"mm2slo uses MirrorMaker 2's principal on {', '.join(self.principals)}",
                "it can write to every replicated topic, and mm2slo only reads them",
                "set clusters.<alias>.security to an own principal with the permissions of "
                "docs/permissions.md",
            )  # fmt: skip
            self.findings.append(finding)

    def _add_cluster(self, cluster: MirrorCluster, setup: MirrorSetup) -> None:
        alias = cluster.alias
        # The security settings of the first file apply.
        replaced = own_keys(self.own, "clusters", alias) | (
            {"security"} if alias in self.clusters else set()
        )
        before = len(self.findings)
        client = self._resolve(
            {
                key: each
                for key, each in cluster.client.items()
                if ("bootstrap_servers" if key == _SERVERS else "security") not in replaced
            },
            setup,
        )
        section = self.clusters.setdefault(alias, {})
        self.origins.setdefault(("clusters", alias), _place(cluster.origin))
        if _SERVERS in client:
            self._add_servers(alias, section, client[_SERVERS])
        failed = any(each.severity is Severity.ERROR for each in self.findings[before:])
        if failed or "security" in replaced:
            return
        security, findings = read_security(client, self.files)
        self.findings += findings
        if security is not None:
            section["security"] = security
            tls = security.tls
            if security.sasl or (tls and (tls.certificate or tls.certificate_file)):
                self.principals[alias] = cluster.origin

    def _add_servers(self, alias: str, section: dict[str, object], servers: Setting) -> None:
        known = str(section.setdefault("bootstrap_servers", servers.value))
        path = ("clusters", alias, "bootstrap_servers")
        first = Origin(*self.origins.setdefault(path, _place(servers.origin)))
        if not _servers(known) & _servers(servers.value):
            self._report_error(
                "conflicting-clusters", servers.origin,
                f"the cluster {alias!r} has the bootstrap servers {servers.value!r}, but {known!r} "
                f"in {first}",
                "an alias is one cluster",
                f"set clusters.{alias}.bootstrap_servers, or use one mm2slo.yaml per MirrorMaker 2",
            )  # fmt: skip

    def _add_flow(
        self,
        flow: MirrorFlow,
        reverse: MirrorFlow | None,
        setup: MirrorSetup,
        kafka_version: str | None,
    ) -> None:
        label = flow.flow.label
        if label in self.flows:
            first = Origin(*self.origins["flows", label])
            self._report_error(
                "duplicate-flow", flow.origin,
                f"the flow {label!r} is already enabled in {first}",
                "two of the same flow replicate each record twice",
                "leave out one of the files, or disable the flow in one of them",
            )  # fmt: skip
            return
        flow = self._resolve_flow(flow, setup)
        section, findings = flow_section(flow, kafka_version, reverse=reverse)
        ignored = {f"custom-{name}" for name in own_keys(self.own, "flows", label)}
        self.findings += (each for each in findings if each.check not in ignored)
        self.flows[label] = section
        self.origins["flows", label] = _place(flow.origin)
        for path, key in _CHECKED_LATER.items():
            for each in flow.connectors.values():
                if key in each.settings:
                    place = _place(each.settings[key].origin)
                    self.origins.setdefault(("flows", label, *path), place)

    def _resolve_flow(self, flow: MirrorFlow, setup: MirrorSetup) -> MirrorFlow:
        connectors = {
            kind: replace(each, settings=self._resolve(each.settings, setup, _NOT_OF_FLOWS))
            for kind, each in flow.connectors.items()
        }
        settings = self._resolve(flow.worker.settings, setup, _NOT_OF_FLOWS)
        return replace(flow, connectors=connectors, worker=replace(flow.worker, settings=settings))

    def _resolve(
        self, settings: Settings, setup: MirrorSetup, ignored: re.Pattern[str] | None = None
    ) -> Settings:
        chosen = {
            key: each for key, each in settings.items() if not ignored or not ignored.search(key)
        }
        resolved, findings = resolve_settings(chosen, setup.providers, self.files)
        self.findings += findings
        return {**settings, **resolved}

    def _report_error(self, check: str, origin: Origin, what: str, why: str, action: str) -> None:
        self.findings.append(Finding(check, Severity.ERROR, origin, what, why, action))


def _place(origin: Origin) -> tuple[str, int | None]:
    return origin.file, origin.line


def _servers(text: str) -> set[str]:
    return {server.strip() for server in text.split(",")}
