"""Clusters and flows for mm2slo.yaml, from MirrorMaker 2's own configuration."""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, field, replace
from typing import TYPE_CHECKING, Final

from mm2slo_core.config.config_layers import BaseConfig, own_keys
from mm2slo_core.config.config_problems import Path, Problem
from mm2slo_core.java_values import share_servers
from mm2slo_core.mm2_config.findings import Finding, Origin, Severity
from mm2slo_core.mm2_config.flow_settings import flow_section
from mm2slo_core.mm2_config.java_security import read_security
from mm2slo_core.mm2_config.provider_references import MirrorFiles, resolve_settings

if TYPE_CHECKING:
    from collections import defaultdict
    from collections.abc import Mapping, Sequence

    from mm2slo_core.mm2_config.mirror_setup import (
        MirrorCluster,
        MirrorFlow,
        MirrorSetup,
        Setting,
        Settings,
    )

_SERVERS: Final = "bootstrap.servers"
_NOTHING: Final = re.compile(r"(?!)")
# Settings of connectors and workers that do not matter to flows and may refer to secrets.
_NOT_OF_FLOWS: Final = re.compile(
    r"bootstrap\.servers$|(?:^|\.)(?:sasl|ssl)\.|^(?:transforms|predicates)\.|converter"
)


def config_problem(finding: Finding) -> Problem:
    """*finding* as a problem in the report of a configuration."""
    what, origin = f"{finding.what}; {finding.why}", finding.origin
    return Problem("", what, None, finding.action, origin.line, file=origin.file)


def combine_setups(
    setups: Sequence[MirrorSetup],
    files: MirrorFiles,
    own: Mapping[str, object],
    kafka_version: str | None = None,
) -> tuple[BaseConfig, tuple[Finding, ...]]:
    """Combine *setups*; errors among the findings are problems of the result.

    *own* is the content of mm2slo.yaml: what it replaces is neither resolved nor read.
    """
    builder = _Builder(files, own_keys(own))
    for setup in setups:
        builder.add(setup, kafka_version or setup.kafka_version)
    builder.report_principals()
    findings = tuple(dict.fromkeys(builder.findings))
    problems = tuple(config_problem(each) for each in findings if each.is_error)
    is_complete = not any(each.is_error for setup in setups for each in setup.findings)
    base = BaseConfig(builder.clusters, builder.flows, builder.origins, problems, is_complete)
    return base, findings


@dataclass(slots=True)
class _Builder:
    files: MirrorFiles
    own: defaultdict[tuple[str, str], set[str]]
    clusters: dict[str, dict[str, object]] = field(default_factory=dict)
    flows: dict[str, dict[str, object]] = field(default_factory=dict)
    origins: dict[Path, tuple[str, int | None]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    principals: dict[str, Origin] = field(default_factory=dict)

    def add(self, setup: MirrorSetup, kafka_version: str | None) -> None:
        self.findings += setup.findings
        flows = {each.flow: each for each in setup.flows}
        used = {alias for each in setup.enabled_flows for alias in astuple(each.flow)}
        for alias, cluster in setup.clusters.items():
            if alias in used or self.own["clusters", alias]:
                self._add_cluster(cluster, setup)
        for flow in setup.enabled_flows:
            label = flow.flow.label
            if not self._is_first(flow):
                continue
            resolved = self._resolve_flow(flow, setup)
            reverse = flows.get(flow.flow.reverse)
            self.flows[label], findings = flow_section(
                resolved, kafka_version, reverse=reverse, providers=setup.providers
            )
            replaced = self.own["flows", label] | self.own["defaults", ""]
            # References that cannot be resolved have been reported.
            ignored = {"unknown-value", *(f"custom-{name}" for name in replaced)}
            self.findings += (each for each in findings if each.check not in ignored)

    def report_principals(self) -> None:
        """Recommend an own principal, once for all clusters."""
        if self.principals:
            self.findings.append(Finding(
                "own-principal", Severity.WARNING, next(iter(self.principals.values())),
                f"mm2slo uses MirrorMaker 2's principal on {', '.join(self.principals)}",
                "it can write to every replicated topic, and mm2slo only reads them",
                "set clusters.<alias>.security to an own principal with the permissions of "
                "docs/permissions.md",
            ))  # fmt: skip

    def _add_cluster(self, cluster: MirrorCluster, setup: MirrorSetup) -> None:
        alias, before = cluster.alias, len(self.findings)
        replaced = {*self.own["clusters", alias]}
        if alias in self.clusters:
            # The security settings of the first file apply.
            replaced.add("security")
        chosen = {
            key: each
            for key, each in cluster.client.items()
            if ("bootstrap_servers" if key == _SERVERS else "security") not in replaced
        }
        client = self._resolve(chosen, setup)
        section = self.clusters.setdefault(alias, {})
        self.origins.setdefault(("clusters", alias), astuple(cluster.origin))
        if _SERVERS in client:
            self._add_servers(alias, client[_SERVERS])
        if "security" in replaced or any(each.is_error for each in self.findings[before:]):
            return
        security, findings = read_security(client, self.files)
        self.findings += findings
        if security is not None:
            section["security"] = security
            tls = security.tls
            if security.sasl or (tls and (tls.certificate or tls.certificate_file)):
                self.principals[alias] = cluster.origin

    def _add_servers(self, alias: str, servers: Setting) -> None:
        known = str(self.clusters[alias].setdefault("bootstrap_servers", servers.value))
        path = ("clusters", alias, "bootstrap_servers")
        first = Origin(*self.origins.setdefault(path, astuple(servers.origin)))
        if not share_servers(known, servers.value):
            self.findings.append(Finding(
                "conflicting-clusters", Severity.ERROR, servers.origin,
                f"the cluster {alias!r} has the bootstrap servers {servers.value!r}, but {known!r} "
                f"in {first}",
                "an alias is one cluster",
                f"set clusters.{alias}.bootstrap_servers, or use one mm2slo.yaml per MirrorMaker 2",
            ))  # fmt: skip

    def _is_first(self, flow: MirrorFlow) -> bool:
        first = self.origins.setdefault(("flows", flow.flow.label), astuple(flow.origin))
        if flow.flow.label in self.flows:
            self.findings.append(Finding(
                "duplicate-flow", Severity.ERROR, flow.origin,
                f"the flow {flow.flow.label!r} is already enabled in {Origin(*first)}",
                "two of the same flow replicate each record twice",
                "leave out one of the files, or disable the flow in one of them",
            ))  # fmt: skip
        return flow.flow.label not in self.flows

    def _resolve_flow(self, flow: MirrorFlow, setup: MirrorSetup) -> MirrorFlow:
        connectors = {
            kind: replace(each, settings=self._resolve(each.settings, setup, _NOT_OF_FLOWS))
            for kind, each in flow.connectors.items()
        }
        settings = self._resolve(flow.worker.settings, setup, _NOT_OF_FLOWS)
        return replace(flow, connectors=connectors, worker=replace(flow.worker, settings=settings))

    def _resolve(
        self, settings: Settings, setup: MirrorSetup, ignored: re.Pattern[str] = _NOTHING
    ) -> Settings:
        chosen = {key: each for key, each in settings.items() if not ignored.search(key)}
        resolved, findings = resolve_settings(chosen, setup.providers, self.files)
        self.findings += findings
        return {**settings, **resolved}
