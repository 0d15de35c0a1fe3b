"""What a MirrorMaker 2 configuration says, in whatever form it was written.

Every reader returns a `MirrorSetup`; configuration, lint, diff and render start from it. Settings
have the keys and values that Kafka's connectors and workers see, after all rules of precedence of
the form, with the place where each was written. Values contain provider references (`${env:X}`) as
written: `provider_references` resolves them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from mm2slo_core.java_values import read_boolean, read_integer, trim
from mm2slo_core.topology import Flow


class Form(StrEnum):
    PROPERTIES = "properties"
    STRIMZI = "strimzi"
    CONNECT_JSON = "connect-json"


MIRROR_PACKAGE: Final = "org.apache.kafka.connect.mirror."
"""The package of MirrorMaker 2's connectors, policies and filters."""
BYTE_ARRAY_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
"""Copies keys, values and headers byte for byte; dedicated mode and Strimzi set it."""


class ConnectorKind(StrEnum):
    """MirrorMaker 2's connectors; the value is the name of the class without its package."""

    SOURCE = "MirrorSourceConnector"
    CHECKPOINT = "MirrorCheckpointConnector"
    HEARTBEAT = "MirrorHeartbeatConnector"


class ProviderKind(StrEnum):
    """What a config provider reads: Kafka's three, and Kubernetes secrets (Strimzi)."""

    ENV = "env"
    FILE = "file"
    DIRECTORY = "directory"
    SECRET = "secret"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. *key* as written in the file; *value* may be a password and is never shown."""

    key: str
    value: str = field(repr=False)
    origin: Origin

    @property
    def is_false(self) -> bool:
        return read_boolean(self.value) is False


# Effective keys, as a connector, worker or Java client has them, without any prefix.
Settings = Mapping[str, Setting]

WORKER_NAMES: Final = {
    "group_id": "group.id",
    "offsets_topic": "offset.storage.topic",
    "configs_topic": "config.storage.topic",
    "status_topic": "status.storage.topic",
}
"""The fields of a worker that name its group and topics, with their keys."""

EMIT: Final = {
    ConnectorKind.CHECKPOINT: ("emit.checkpoints.enabled", "emit.checkpoints.interval.seconds"),
    ConnectorKind.HEARTBEAT: ("emit.heartbeats.enabled", "emit.heartbeats.interval.seconds"),
}
"""The settings that switch connectors off: false, and an interval below 0."""


@dataclass(frozen=True, slots=True)
class MirrorCluster:
    """A cluster; *client* has the properties of Kafka's Java clients.

    Forms with their own syntax (Strimzi) are translated to these, with secrets as
    `${secret:NAME:KEY}` references.
    """

    alias: str
    client: Settings
    origin: Origin

    @property
    def servers(self) -> str | None:
        found = self.client.get("bootstrap.servers")
        return found.value if found else None


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector of a flow; *name* is part of Connect's offset key, *state* is Strimzi's."""

    kind: ConnectorKind
    name: str
    settings: Settings
    origin: Origin
    state: str = "running"


@dataclass(frozen=True, slots=True)
class Worker:
    """The Connect worker group that runs a flow; a name is None if the form does not give it."""

    group_id: str | None
    offsets_topic: str | None
    status_topic: str | None
    configs_topic: str | None
    settings: Settings

    @classmethod
    def of(cls, settings: Settings, **defaults: str) -> Worker:
        """The worker group with *settings*, and with *defaults* for names that are not set."""
        set_names = {name: settings.get(key) for name, key in WORKER_NAMES.items()}
        names = {n: trim(each.value) if each else defaults.get(n) for n, each in set_names.items()}
        return cls(**names, settings=settings)

    @property
    def topics(self) -> set[str]:
        """The topics of the group, as far as they are known."""
        return {*filter(None, (self.configs_topic, self.offsets_topic, self.status_topic))}

    @property
    def names(self) -> dict[str, str | None]:
        """The names of the group and of the topics, by their keys."""
        return {key: getattr(self, name) for name, key in WORKER_NAMES.items()}


@dataclass(frozen=True, slots=True)
class MirrorFlow:
    """A flow with its connectors. A disabled flow still has a herder that emits heartbeats."""

    flow: Flow
    connectors: Mapping[ConnectorKind, Connector]
    worker: Worker
    origin: Origin
    enabled: bool = True

    @property
    def working_connectors(self) -> dict[ConnectorKind, Connector]:
        """The connectors that do something; those of a disabled flow emit heartbeats only."""
        found = {}
        for kind in ConnectorKind:
            if connector := self.connectors.get(kind):
                switch, pace = EMIT.get(kind, ("", ""))
                emit, interval = map(connector.settings.get, (switch, pace))
                # MirrorCheckpointConfig and MirrorHeartbeatConfig make a switched-off interval
                # -1 ms, and connectors with an interval below 0 have no tasks.
                below_0 = interval and (read_integer(interval.value) or 0) < 0
                is_off = below_0 or (emit and emit.is_false)
                if not is_off and (self.enabled or kind is ConnectorKind.HEARTBEAT):
                    found[kind] = connector
        return found


@dataclass(frozen=True, slots=True)
class MirrorSetup:
    """Clusters and flows of one or several files.

    *providers* maps the names of config providers, as used in references, to what they read; None:
    what mm2slo cannot read.
    *kafka_version* is the version that the form states (Strimzi's `spec.version`), if any.
    *api_version* is that of a Kubernetes resource.
    *process* has what dedicated mode's process reads for all flows: `dedicated.mode.*`.
    """

    form: Form
    clusters: Mapping[str, MirrorCluster]
    flows: tuple[MirrorFlow, ...]
    findings: tuple[Finding, ...] = ()
    providers: Mapping[str, ProviderKind | None] = field(default_factory=dict)
    kafka_version: str | None = None
    process: Settings = field(default_factory=dict)
    api_version: str | None = None

    @property
    def enabled_flows(self) -> tuple[MirrorFlow, ...]:
        return tuple(flow for flow in self.flows if flow.enabled)


class FindingSeverity(StrEnum):
    """How much a finding matters; an error means that the file cannot be used as it is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where a setting was written; *line* counts from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding. *check* is its stable name, as in `unknown-key`; no text shows a secret."""

    check: str
    severity: FindingSeverity
    origin: Origin
    what: str
    why: str
    action: str

    @property
    def is_error(self) -> bool:
        return self.severity is FindingSeverity.ERROR

    def __str__(self) -> str:
        return f"{self.origin}: {self.severity}: {self.what} ({self.action}) [{self.check}]"


class FileForm(StrEnum):
    """What a file contains; the value is its key in `mm2:` of mm2slo.yaml."""

    STRIMZI = "strimzi"
    CONNECT = "connect"
    PROPERTIES = "properties"
    WORKER = "worker"


def file_form(content: bytes) -> FileForm | None:
    """The form of a configuration of MirrorMaker 2, by its keys; None if it is not known."""
    text = content.decode(errors="replace").removeprefix("\ufeff")
    patterns = {
        FileForm.STRIMZI: r"""(?:^|[-{,])\s*["']?apiVersion["']?\s*:""",
        FileForm.CONNECT: r"\A\s*[\[{]",
        FileForm.PROPERTIES: r"^[ \t]*clusters[ \t]*[=: \t]",
        FileForm.WORKER: r"^[ \t]*(?:group\.id|offset\.storage\.topic)[ \t]*[=: \t]",
    }
    found = (form for form, each in patterns.items() if re.search(each, text, re.MULTILINE))
    return next(found, None)
