"""Checks of a section that involve several fields, and checks between flows."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from mm2slo_core.config.alerting_config import AlertingConfig
from mm2slo_core.config.client_security import (
    Mechanism,
    OAuth,
    Sasl,
    Security,
    Tls,
    librdkafka_properties,
)
from mm2slo_core.config.config_document import Path, did_you_mean
from mm2slo_core.config.flow_config import (
    AuditConfig,
    CanaryCarrier,
    CanaryConfig,
    ClusterConfig,
    Engine,
    FlowConfig,
    IdentityConfig,
    PolicyKind,
)
from mm2slo_core.config.service_config import ExporterConfig, StateConfig, TimelineConfig
from mm2slo_core.objectives.objective import slugify
from mm2slo_core.quantity_text import format_duration
from mm2slo_core.replication_policy import OffsetSyncsLocation
from mm2slo_core.topology import Flow, slug_collisions

_MATCH_ALL: Final = frozenset({".*", ".+"})

# From MirrorMaker 2's default topics.exclude.
_NOT_REPLICATED: Final = re.compile(r"mm2.*\.internal")

_OWNED: Final = frozenset(
    {
        "bootstrap.servers", "metadata.broker.list", "group.id", "enable.auto.commit",
        "enable.auto.offset.store", "auto.offset.reset", "isolation.level", "transactional.id",
    }
)  # fmt: skip
_CREDENTIALS: Final = {Mechanism.OAUTHBEARER: ("oauth",), Mechanism.AWS_MSK_IAM: ("aws_region",)}
_PEM: Final = "-----BEGIN CERTIFICATE-----"

_TLS_OWNERS: Final = {
    "key_file": ("certificate_file",), "key": ("certificate",), "certificate": ("key",),
    "key_password": ("certificate_file", "certificate"),
}  # fmt: skip

_SPARK_OWNED: Final = {
    "spark.master": "audit.spark.master",
    "spark.driver.memory": "audit.spark.driver_memory",
    "spark.jars": "audit.spark.jars",
    "spark.jars.ivy": "audit.spark.ivy_dir",
    "spark.sql.session.timeZone": "mm2slo itself",
}


class SectionFinding(NamedTuple):
    """A failed check; *path* is relative to the checked section."""

    path: Path
    what: str
    expected: str
    next_step: str | None = None


def within(path: Path, findings: Iterable[SectionFinding]) -> Iterator[SectionFinding]:
    """*findings* of the section at *path*, relative to the section around it."""
    return (each._replace(path=(*path, *each.path)) for each in findings)


def check_security(security: Security) -> Iterator[SectionFinding]:
    """SASL and TLS settings match the protocol and are complete."""
    protocol = security.protocol
    if security.sasl is None and protocol.has_sasl:
        yield SectionFinding(
            ("sasl",), f"is required with the protocol {protocol}",
            "mechanism and credentials", "add sasl, or set protocol to one without SASL",
        )  # fmt: skip
    for name, is_used, protocols in (
        ("sasl", protocol.has_sasl, "SASL_PLAINTEXT or SASL_SSL"),
        ("tls", protocol.has_tls, "SSL or SASL_SSL"),
    ):
        if getattr(security, name) is not None and not is_used:
            yield SectionFinding(
                (name,), f"has no effect with the protocol {protocol}",
                f"protocol {protocols}", f"set protocol, or remove {name}",
            )  # fmt: skip
    if security.sasl is not None:
        yield from within(("sasl",), _check_sasl(security.sasl))
    if security.tls is not None:
        yield from within(("tls",), _check_tls(security.tls))


def _check_tls(tls: Tls) -> Iterator[SectionFinding]:
    for name, owners in _TLS_OWNERS.items():
        if getattr(tls, name) is not None and not any(getattr(tls, owner) for owner in owners):
            yield SectionFinding(
                (name,), f"is set without {owners[0]}",
                f"{owners[0]} and {name} together, for mutual TLS", f"add {owners[0]}",
            )  # fmt: skip
    yield from _check_content(tls, "ca", "certificate", "key")


def _check_content(section: Tls | OAuth, *names: str) -> Iterator[SectionFinding]:
    for name in names:
        content = getattr(section, name)
        if content is not None and getattr(section, f"{name}_file") is not None:
            yield SectionFinding(
                (name,), f"is set together with {name}_file",
                f"{name}_file or {name}", "remove one of them",
            )  # fmt: skip
        # A key here would be shown.
        if isinstance(content, str) and (_PEM not in content or "PRIVATE KEY" in content):
            yield SectionFinding(
                (name,), "is not a list of PEM certificates", f"{_PEM}, and so on, without a key"
            )


def _check_sasl(sasl: Sasl) -> Iterator[SectionFinding]:
    needed = _CREDENTIALS.get(sasl.mechanism, ("username", "password"))
    for name in ("username", "password", "oauth", "aws_region"):
        if (getattr(sasl, name) is None) == (name in needed):
            what, verb = ("is required", "add") if name in needed else ("has no effect", "remove")
            yield SectionFinding(
                (name,), f"{what} with the mechanism {sasl.mechanism}",
                f"{' and '.join(needed)} with {sasl.mechanism}", f"{verb} {name}",
            )  # fmt: skip
    if sasl.oauth is not None:
        yield from within(("oauth",), _check_content(sasl.oauth, "ca"))


def check_cluster(cluster: ClusterConfig) -> Iterator[SectionFinding]:
    """Security is complete, and `client` sets only properties that have no other key."""
    yield from within(("security",), check_security(cluster.security))
    rendered = librdkafka_properties(cluster.security)
    for name in cluster.client:
        if name in rendered or name in _OWNED or name.startswith("sasl."):
            owner = "security" if name in rendered or name.startswith("sasl.") else "mm2slo itself"
            yield SectionFinding(
                ("client", name), f"is set by {owner}",
                "librdkafka properties that are not set elsewhere", "remove it",
            )  # fmt: skip


def check_flow(flow: FlowConfig, exporter: ExporterConfig) -> Iterator[SectionFinding]:
    """The settings of one flow are consistent with each other and with the poll interval."""
    yield from within(("canary",), _check_canary(flow.canary))
    if flow.engine is not Engine.MIRRORMAKER2 and flow.canary.carrier is CanaryCarrier.HEARTBEATS:
        yield SectionFinding(
            ("canary", "carrier"), f"'heartbeats' is not replicated by the engine {flow.engine}",
            "topic or off",
            "set carrier to topic if the engine replicates that topic, otherwise to off",
        )  # fmt: skip
    yield from within(("audit", "identity"), _check_identity(flow.audit.identity))
    yield from _check_freshness(flow)
    yield from _check_policy(flow)
    if flow.slice < exporter.poll_interval:
        yield SectionFinding(
            ("slice",), f"{format_duration(flow.slice)} is shorter than exporter.poll_interval",
            f"at least {format_duration(exporter.poll_interval)}, so that each slice has a sample",
            "increase slice or decrease poll_interval",
        )  # fmt: skip


def _check_canary(canary: CanaryConfig) -> Iterator[SectionFinding]:
    tiers = canary.latency_tiers
    if list(tiers) != sorted(set(tiers)):
        yield SectionFinding(
            ("latency_tiers",), "are not ascending", "each threshold once, smallest first"
        )
    if max(tiers) > canary.deadline:
        yield SectionFinding(
            ("latency_tiers",), f"{format_duration(max(tiers))} is longer than the deadline",
            f"thresholds up to {format_duration(canary.deadline)}, when a canary is settled",
            "remove the threshold or increase deadline",
        )  # fmt: skip
    if canary.interval > canary.deadline:
        what = f"{format_duration(canary.interval)} is longer than the deadline"
        yield SectionFinding(("interval",), what, f"up to {format_duration(canary.deadline)}")


def _check_freshness(flow: FlowConfig) -> Iterator[SectionFinding]:
    if not _MATCH_ALL.intersection(flow.freshness[-1].topics):
        yield SectionFinding(
            ("freshness",), "does not match all topics",
            'a last class with topics: [".*"]',
            'add {name: default, topics: [".*"], threshold: 60s} as the last one',
        )  # fmt: skip
    for name, count in Counter(level.name for level in flow.freshness).items():
        if count > 1:
            yield SectionFinding(
                ("freshness",), f"has {count} classes named {name!r}", "unique names"
            )
    for index, level in enumerate(flow.freshness[:-1]):
        if _MATCH_ALL.intersection(level.topics):
            yield SectionFinding(
                ("freshness", index), "matches every topic, so the classes after it never apply",
                "the class that matches all topics last",
            )  # fmt: skip


def _check_policy(flow: FlowConfig) -> Iterator[SectionFinding]:
    separator = flow.policy.separator
    is_used = flow.policy.kind is PolicyKind.DEFAULT and flow.engine is Engine.MIRRORMAKER2
    for alias in (flow.flow.source, flow.flow.target):
        if is_used and separator in alias:
            yield SectionFinding(
                ("policy", "separator"), f"{separator!r} is part of the alias {alias!r}",
                "a separator that no alias contains: MirrorMaker 2 splits topic names at it",
                "change the alias or the separator in MirrorMaker 2 and here",
            )  # fmt: skip


def _check_identity(identity: IdentityConfig) -> Iterator[SectionFinding]:
    if not (identity.key or identity.value or identity.headers):
        what, expected = "excludes key, value and headers", "at least one of key, value and headers"
        yield SectionFinding((), what, expected)
    if identity.ignored_headers and not identity.headers:
        what = "has no effect with headers: false"
        yield SectionFinding(("ignored_headers",), what, "headers: true", "remove it")


def check_audit(audit: AuditConfig) -> Iterator[SectionFinding]:
    """`spark.conf` contains only Spark properties that have no other key."""
    for name in audit.spark.conf:
        owner = _SPARK_OWNED.get(name)
        if owner is not None:
            yield SectionFinding(
                ("spark", "conf", name), f"is set by {owner}",
                "Spark properties that are not set elsewhere", "remove it",
            )  # fmt: skip
        elif not name.startswith("spark."):
            what, expected = "is not a Spark property", "names that start with spark."
            yield SectionFinding(("spark", "conf", name), what, expected)


def check_exporter(exporter: ExporterConfig) -> Iterator[SectionFinding]:
    """MirrorMaker 2 does not replicate the exporter's topics."""
    timeline, state = TimelineConfig(), StateConfig()
    for section, key, usual in (
        ("timeline", "topic", timeline.topic),
        ("timeline", "arrivals_topic", timeline.arrivals_topic),
        ("state", "topic", state.topic),
    ):
        topic = getattr(getattr(exporter, section), key)
        if not _NOT_REPLICATED.fullmatch(topic):
            yield SectionFinding(
                (section, key), f"{topic!r} would be replicated by MirrorMaker 2",
                f"a name such as {usual}, which the default topics.exclude matches",
            )  # fmt: skip


def check_alerting(alerting: AlertingConfig) -> Iterator[SectionFinding]:
    """Channel names are unique, and `watchdog` and `platform` refer to one of them."""
    others = (
        *(each.name for each in alerting.webhooks),
        *(each.name for each in alerting.receivers),
    )
    for key, known in (("watchdog", others), ("platform", alerting.channels)):
        name = getattr(alerting, key)
        if name is not None and name not in known:
            yield SectionFinding(
                (key,), f"unknown receiver {name!r}",
                f"one of {', '.join(known)}" if known else "a name under alerting.webhooks",
                did_you_mean(name, known, f"add {name} under alerting.webhooks"),
            )  # fmt: skip
    first: dict[str, tuple[str, int, str]] = {}
    names = {
        "slack": [each.name for each in alerting.slack],
        "webhooks": [each.name for each in alerting.webhooks],
        "receivers": [each.name for each in alerting.receivers],
    }
    for kind, given in names.items():
        for index, name in enumerate(given):
            claimed = first.setdefault(slugify(name) or name, (kind, index, name))
            if claimed[:2] != (kind, index):
                other = "" if claimed[2] == name else f" ({claimed[2]!r})"
                yield SectionFinding(
                    (kind, index, "name"),
                    f"{name!r} is already the name of alerting.{claimed[0]}[{claimed[1]}]{other}",
                    "names that differ in more than case and punctuation",
                    "rename one of them",
                )  # fmt: skip
    severities = alerting.severities
    if severities.page == severities.ticket:
        yield SectionFinding(
            ("severities",), f"page and ticket are both {severities.page!r}",
            "two values, so that pages can be routed",
        )  # fmt: skip
    for label in sorted(_RESERVED_LABELS.intersection(alerting.labels)):
        yield SectionFinding(
            ("labels", label), f"{label} is a label of the alerts themselves", "another label"
        )
    for index, receiver in enumerate(alerting.receivers):
        for path in _inline_secrets(receiver.model_extra or {}, ("receivers", index)):
            yield SectionFinding(
                path, "contains a secret",
                f"{path[-1]}_file, or {{name: SECRET, key: KEY}} for AlertmanagerConfig",
            )  # fmt: skip


_RESERVED_LABELS: Final = frozenset(
    {
        *("alertname", "severity", "window", "flow", "source", "target", "cluster", "sli", "tier"),
        *("topic", "group", "channel", "owner", "namespace"),
    }
)

_SECRET_KEY: Final = re.compile(
    r"(?:.+_)?(?:password|secret|token|credentials)|.+_key|(?:api|webhook)_url"
)


def _inline_secrets(value: object, path: Path) -> Iterator[Path]:
    """Yield the places of texts that Alertmanager treats as secrets."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, str) and _SECRET_KEY.fullmatch(str(key)):
                yield (*path, str(key))
            yield from _inline_secrets(inner, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _inline_secrets(inner, (*path, index))


def check_aliases(
    flows: Mapping[int, Flow], clusters: Mapping[str, object]
) -> Iterator[SectionFinding]:
    """All flows are between configured clusters. *flows* by their position in the file."""
    for index, flow in flows.items():
        for alias in (flow.source, flow.target):
            if alias not in clusters:
                yield SectionFinding(
                    ("flows", index, "flow"),
                    f"{flow.label!r} refers to the unknown cluster {alias!r}",
                    f"one of {', '.join(clusters)}" if clusters else "a cluster under clusters",
                    did_you_mean(alias, clusters, f"add {alias} under clusters"),
                )  # fmt: skip


def check_names(flows: Mapping[int, Flow]) -> Iterator[SectionFinding]:
    """Flows and their ids are unique."""
    first: dict[Flow, int] = {}
    for index, flow in flows.items():
        if flow in first:
            yield SectionFinding(
                ("flows", index, "flow"),
                f"{flow.label!r} is already configured as flows[{first[flow]}]",
                "each flow once", "merge the two entries",
            )  # fmt: skip
        first.setdefault(flow, index)
    for slug, claims in slug_collisions(first).items():
        yield SectionFinding(
            ("flows", max(first[flow] for flow in claims), "flow"),
            f"the flows {', '.join(flow.label for flow in claims)} share the id {slug!r}",
            "aliases that differ in more than case and punctuation", "rename an alias",
        )  # fmt: skip


def check_offset_syncs(flows: Mapping[int, FlowConfig]) -> Iterator[SectionFinding]:
    """Each flow has its own offset-syncs topic: the records do not contain the flow.

    On cluster A, A->B with location `source` and B->A with location `target` both use
    `mm2-offset-syncs.B.internal`.
    """
    writers: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, config in flows.items():
        if config.engine is not Engine.MIRRORMAKER2:
            continue
        flow, policy = config.flow, config.policy
        if config.offset_syncs_location is OffsetSyncsLocation.TARGET:
            flow = flow.reverse
        separator = policy.separator if policy.internal_separator else "."
        writers[flow.source, flow.target, separator].append(index)
    for (holder, other, separator), indexes in writers.items():
        labels = {flows[index].label for index in indexes}
        if len(labels) > 1:
            topic = f"mm2-offset-syncs{separator}{other}{separator}internal"
            yield SectionFinding(
                ("flows", max(indexes), "offset_syncs_location"),
                f"the flows {', '.join(sorted(labels))} share the topic {topic!r} on {holder!r}",
                "one offset-syncs topic per flow, otherwise their offsets cannot be translated",
                "set the same offset-syncs.topic.location for both flows in MirrorMaker 2 and here",
            )  # fmt: skip


def check_replication_cycles(flows: Mapping[int, FlowConfig]) -> Iterator[SectionFinding]:
    """Under the identity policy, no canary topic is replicated back to its source."""
    first: dict[Flow, str] = {}
    for index, config in flows.items():
        if config.policy.kind is not PolicyKind.IDENTITY:
            continue
        if config.canary.carrier is not CanaryCarrier.TOPIC:
            continue
        topic = first.setdefault(config.flow, config.canary.topic)
        if first.get(config.flow.reverse) == topic:
            yield SectionFinding(
                ("flows", index, "canary", "topic"),
                f"{topic!r} is replicated in a cycle: {config.flow.reverse} has the same canary "
                "topic, and the identity policy does not mark the source",
                "a topic other than that of the reverse flow",
                "use one topic per flow, and include each in the topics of its own flow only",
            )  # fmt: skip
