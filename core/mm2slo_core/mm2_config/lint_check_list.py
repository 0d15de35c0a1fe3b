"""All checks of `mm2slo lint`: why each matters and what to do; docs/lint.md is made from it."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Final, NamedTuple

from pydantic import ValidationError

from mm2slo_core.config.client_security import Security
from mm2slo_core.config.config_loader import BaseConfig
from mm2slo_core.config.flow_config import FlowConfig
from mm2slo_core.mm2_config import lint_checks
from mm2slo_core.mm2_config.connector_settings import NEWEST_VERSION, kafka_release
from mm2slo_core.mm2_config.lint_checks import ClusterFacts, LintFlow, LintInput
from mm2slo_core.mm2_config.mirror_setup import (
    Finding,
    FindingSeverity,
    MirrorFlow,
    MirrorSetup,
    Origin,
)
from mm2slo_core.mm2_config.provider_references import UNDECLARED

_E, _W, _I = FindingSeverity


class LintCheck(NamedTuple):
    """A check by its stable name; a finding may have a better *action*.

    With *connect*, it needs `--connect`.
    """

    name: str
    severity: FindingSeverity
    why: str
    action: str
    connect: bool = False


# fmt: off
CHECKS: Final = {check.name: check for check in (
    LintCheck("plain-text-password", _W, "everyone who can read the file can use it",
              "refer to it by a config provider, as in ${file:/run/keys.properties:password}"),
    LintCheck("empty-password", _E, "the login fails", "set it"),
    LintCheck("placeholder", _E, "MirrorMaker 2 takes it literally", "fill it in"),
    LintCheck(*UNDECLARED),
    LintCheck("host-names-not-verified", _W, "any trusted certificate can impersonate a broker",
              "remove it, and connect by names that are in the brokers' certificates"),
    LintCheck("certificate-expired", _E, "connections fail", "renew the certificate"),
    LintCheck("certificate-expires-soon", _W, "connections fail afterwards",
              "renew the certificate"),
    LintCheck("unknown-key", _W, "MirrorMaker 2 ignores it", "remove it, or correct its name"),
    LintCheck("key-without-effect", _W, "nothing reads it there", "remove it"),
    LintCheck("key-of-other-version", _W, "MirrorMaker 2 ignores it", "remove it"),
    LintCheck("refused-value", _E, "its connector or worker does not start",
              "correct it; comments need lines of their own"),
    LintCheck("comment-in-value", _W,
              "Java reads no comments behind values: it is a part of the value",
              "move the comment to a line of its own"),
    LintCheck("quoted-value", _W, "Java reads the quotes as a part of the value",
              "remove the quotes"),
    LintCheck("no-refresh", _W, "new topics, partitions or groups are never replicated",
              "remove it"),
    LintCheck("single-copy", _W, "the failure of one broker stops the flow or loses records",
              "set it to 3, or to -1 for the cluster's default"),
    LintCheck("too-few-brokers", _E, "the topic cannot be created", "set it to -1", connect=True),
    LintCheck("checkpoints-off", _W, "consumer groups cannot resume on the target", "enable them"),
    LintCheck("offset-syncs-off", _W, "offsets of consumer groups cannot be translated",
              "remove it"),
    LintCheck("group-sync-off", _I, "consumers must translate their offsets at a failover",
              "set sync.group.offsets.enabled = true"),
    LintCheck("slow-group-sync", _W, "offsets on the target are older than the freshness objective",
              "set it to 60 seconds at most"),
    LintCheck("large-offset-lag", _W,
              "each partition may redeliver this many records after a failover",
              "lower it to what consumers can handle; the default is 100"),
    LintCheck("errors-tolerated", _W, "records that fail are dropped", "remove it"),
    LintCheck("records-skipped", _W,
              "records are lost, or replication stalls, if the position expires",
              "remove it: the default is earliest"),
    LintCheck("single-task", _I, "one task replicates everything", "size it with mm2slo plan"),
    LintCheck("idle-tasks", _I, "there are fewer partitions than tasks", "lower it", connect=True),
    LintCheck("connectors-differ", _E, "connecting or translating offsets fails",
              "give all connectors the same value"),
    LintCheck("converter", _E, "records or headers are changed on their way",
              "use org.apache.kafka.connect.converters.ByteArrayConverter"),
    LintCheck("acl-sync-without-users", _I, "without an authorizer it only logs errors",
              "set sync.topic.acls.enabled = false"),
    LintCheck("no-internal-rest", _I, "with several processes, some changes of tasks are lost",
              "set dedicated.mode.enable.internal.rest = true (Kafka 3.5) if there are several"),
    LintCheck("heartbeats-missing", _I,
              "MirrorMaker 2's heartbeats cannot show that the flow works",
              "emit heartbeats on a flow back, or rely on mm2slo's canaries"),
    LintCheck("comma-in-pattern", _E, "Kafka splits the list at every comma",
              "write alternatives, as x{2}|x{3}"),
    LintCheck("glob", _W, "patterns are regular expressions: ab* is a and any number of b",
              "write .* for any text"),
    LintCheck("all-topics", _I, "topics of tests and tools are replicated as well",
              "list the topics"),
    LintCheck("internal-topics", _W, "they waste space, and other workers may read the copies",
              "add them to topics.exclude"),
    LintCheck("no-topic", _W, "nothing is replicated for it", "correct it", connect=True),
    LintCheck("replication-cycle", _E, "records circulate forever under the identity policy",
              "use DefaultReplicationPolicy for all of them, or topics that do not overlap"),
    LintCheck("two-writers", _E, "order is lost, and offsets cannot be translated",
              "use DefaultReplicationPolicy, or topics that do not overlap"),
    LintCheck("double-prefix", _W, "the records arrive twice",
              "exclude the copies of other clusters by topics.exclude of this flow"),
    LintCheck("renamed-copies", _W,
              "checkpoints, synced offsets, topic settings and ACLs have the names of the policy, "
              "and MirrorMaker 2 does not create the renamed topics",
              "remove it, or choose names by a replication policy"),
    LintCheck("separator", _I, "changing it renames all topics, and replication starts again",
              "keep it as it is for a running flow"),
    LintCheck("separator-in-alias", _E, "copies are not recognised, and are replicated back",
              "choose another alias or separator"),
    LintCheck("wrong-target", _E, "producers of connectors write where the workers are",
              "run the workers on the target, or set producer.override.bootstrap.servers to it"),
    LintCheck("other-target", _W,
              "if these servers are another cluster, the target gets no records",
              "give the workers the servers of the target"),
    LintCheck("one-cluster", _E, "copies are copied again until the brokers stop answering",
              "use one alias for each cluster"),
    LintCheck("shared-offset-syncs", _E, "offsets of consumer groups cannot be translated",
              "set the same offset-syncs.topic.location for both flows"),
    LintCheck("shared-storage", _E, "they overwrite each other's connectors and offsets",
              "give each worker group its own group.id and topics"),
    LintCheck("storage-not-compacted", _E, "connectors and offsets are lost with their retention",
              "set cleanup.policy = compact", connect=True),
    LintCheck("lower-target-limit", _W, "records expire early, or are too large for the target",
              "set it as on the source", connect=True),
    LintCheck("timestamp-limit", _W,
              "a copy keeps its timestamp: after a pause, older records are refused on the target, "
              "and the task fails with all its topics",
              "remove it from the copy, and add it to config.properties.exclude", connect=True),
    LintCheck("name-too-long", _E,
              "Kafka allows 249 characters: the task fails with all its topics",
              "exclude the topic by topics.exclude, or shorten the alias", connect=True),
)}

# fmt: on
_OF_FILES: Final = (
    lint_checks.check_plain_secrets,
    lint_checks.check_providers,
    lint_checks.check_certificates,
    lint_checks.check_client_keys,
    lint_checks.check_topology,
    lint_checks.check_aliases,
    lint_checks.check_storage,
)  # fmt: skip

_OF_FLOWS: Final = (
    lint_checks.check_keys, lint_checks.check_setting_values, lint_checks.check_connectors,
    lint_checks.check_factors, lint_checks.check_texts, lint_checks.check_filters,
    lint_checks.check_names, lint_checks.check_transforms, lint_checks.check_workers,
    lint_checks.check_clusters,
)  # fmt: skip

# What readers cannot use, but MirrorMaker 2 can; its files may be on another machine.
_NO_ERRORS: Final = (
    *("unresolved-reference", "store-missing", "conflicting-clusters", "custom-", "unsupported-"),
)


def lint(
    setups: Sequence[MirrorSetup],
    combined: tuple[BaseConfig, Sequence[Finding]],
    now: datetime,
    facts: Mapping[str, ClusterFacts],
    kafka_version: str | None = None,
) -> tuple[Finding, ...]:
    """Return the findings of readers and checks, in the order of the files' lines.

    *combined* is `combine_setups` of *setups*; *facts* of clusters by alias are empty without
    `--connect`.
    """
    base, read = combined
    unclear = {each.origin for each in read if each.is_error}
    flows = tuple(
        LintFlow(setup, flow, version, _config(flow, base.flows[flow.flow.label], unclear))
        for setup in setups
        for version in [kafka_release(kafka_version or setup.kafka_version or "") or NEWEST_VERSION]
        for flow in setup.enabled_flows
    )
    sections = {alias: each.get("security") for alias, each in base.clusters.items()}
    security = {alias: each for alias, each in sections.items() if isinstance(each, Security)}
    given = LintInput(setups, flows, security, facts, now)
    hits = chain(
        (hit for find in _OF_FILES for hit in find(given)),
        (hit for find in _OF_FLOWS for flow in flows for hit in find(flow, given)),
    )
    findings = [
        replace(each, severity=_I) if each.check.startswith(_NO_ERRORS) else each
        for each in read
        if each.check != "own-principal"
    ]
    for hit in hits:
        name, severity, why, action, _ = CHECKS[hit.check]
        findings.append(Finding(name, severity, hit.origin, hit.what, why, hit.action or action))
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda each: (each.origin.file, each.origin.line or 0)))


# What decides which names a flow selects and writes.
_NAMES: Final = re.compile(
    r"(?:topic|group)(?:s|\.filter)\b|replication\.policy|(?:source|target)\.cluster\.alias"
)


def _config(
    flow: MirrorFlow, section: Mapping[str, object], unclear: Container[Origin]
) -> FlowConfig | None:
    settings = chain(*(each.settings.items() for each in flow.connectors.values()))
    if any(_NAMES.match(key) and each.origin in unclear for key, each in settings):
        return None
    try:
        return FlowConfig.model_validate(section)
    except ValidationError:
        return None
