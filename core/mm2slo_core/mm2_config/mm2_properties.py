"""Reads the properties file of MirrorMaker 2's dedicated mode (`connect-mirror-maker.sh`)."""

import re
from collections.abc import Iterator
from itertools import permutations
from typing import Final

from mm2slo_core.config.config_document import suggest, suggest_typo
from mm2slo_core.file_syntax import PropertiesError, PropertyLine, parse_properties
from mm2slo_core.java_values import read_boolean, split_list
from mm2slo_core.mm2_config import connector_settings
from mm2slo_core.mm2_config.connector_settings import (
    WORKER_PREFIXES,
    DedicatedSettings,
    client_settings,
)
from mm2slo_core.mm2_config.mirror_setup import (
    Connector,
    ConnectorKind,
    Finding,
    FindingSeverity,
    Form,
    MirrorCluster,
    MirrorFlow,
    MirrorSetup,
    Origin,
    Setting,
)
from mm2slo_core.mm2_config.provider_references import read_providers
from mm2slo_core.topology import Flow

_MOST_BYTES: Final = 1 << 20
_MOST_CLUSTERS: Final = 50  # each pair of clusters has a herder
_MOST_UNREAD: Final = 100
_ALIAS: Final = re.compile(r"[A-Za-z0-9._-]{1,100}")
_CONTROL: Final = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_OTHER_FORMAT: Final = re.compile(r"(?:apiVersion|kind|spec|flows|---)$|[{<\[\"]|-----BEGIN")

# Other lines are not shown: they may be a part of a secret without a backslash at the line's end.
_SHOWN_KEY: Final = re.compile(r"[\w-]{1,50}(?:(?:\.|->)[\w-]{1,50}){1,12}", re.ASCII)

# One backslash before a character that no escape of properties files has.
_LOST_BACKSLASH: Final = re.compile(r"(?<!\\)(?:\\\\)*\\[^\\tnrfu :=#!]")
_REGEX_KEY: Final = re.compile(r"(?:^|\.)(?:topics|groups|config\.properties)(?:\.\w+)?$")
_TOP_LEVEL: Final = {
    "clusters",
    *connector_settings.TOP_LEVEL_KEYS,
    *connector_settings.CLIENT_KEYS,
}
_OF_CLUSTERS: Final = connector_settings.WORKER_KEYS | connector_settings.CLIENT_KEYS

# Read by MirrorMaker itself and its REST server.
_OF_PROCESS: Final = (
    *("dedicated.mode.", "plugin.", "listeners", "admin.listeners", "rest.", "access.control."),
    *("response.http.", "ssl.client.auth"),
)
_READ_PREFIXES: Final = (*_OF_PROCESS, "config.providers", *map("{}.".format, WORKER_PREFIXES))
_STOPS: Final = "MirrorMaker 2 does not start with it"
_IGNORED: Final = "MirrorMaker 2 ignores the line"

# Checks with why they matter and what to do, unless a finding has its own action.
_ERRORS: Final = {
    "not-properties": (_STOPS, "give the properties file of MirrorMaker 2"),
    "no-clusters": (_STOPS, "list the aliases of all clusters, as in clusters = us, eu"),
    "invalid-alias": ("topic names contain it", "use only letters, digits, '.', '_' and '-'"),
    "no-bootstrap-servers": (_STOPS, ""),
    "no-flow": ("nothing is replicated", ""),
}

_WARNINGS: Final = {
    "not-boolean": ("the flow is off", "write true or false, and comments on lines of their own"),
    "duplicate-key": ("only the last one applies", "remove the others"),
    "spaces-in-flow": (_IGNORED, "write flows without spaces, as in us->eu.enabled = true"),
    "lost-backslash": ("Java removes it, which changes the pattern", "write two backslashes"),
    "ambiguous-alias": ("keys with this prefix belong to the cluster", "choose another alias"),
    "unknown-alias": (_IGNORED, "add the alias to clusters, or remove the line"),
    "ignored-key": (_IGNORED, "remove the line, or end the line before it with a backslash"),
}


def read_properties(name: str, content: bytes) -> MirrorSetup:
    """Return what the file *name* configures; every problem is a finding.

    The flows are all pairs of clusters with a herder, also those that only emit heartbeats.
    """
    file = _File(name)
    file.parse(content)
    settings = DedicatedSettings(file.properties, file.read_aliases())
    flows = tuple(file.flows(settings))
    if settings.clusters:
        file.check_keys([*settings.clusters], [each.flow for each in flows if each.enabled])
        if not any(flow.enabled for flow in flows):
            pair = "->".join([*settings.clusters, "TARGET"][:2])
            file.report("no-flow", "clusters", "no flow is enabled", f"set {pair}.enabled = true")
    clusters = {alias: file.cluster(alias, settings) for alias in settings.clusters}
    providers, findings = read_providers(file.properties)
    return MirrorSetup(
        Form.PROPERTIES,
        clusters,
        flows,
        tuple(sorted((*file.findings, *findings), key=lambda each: each.origin.line or 0)),
        providers,
        process={key: each for key, each in file.properties.items() if key.startswith(_OF_PROCESS)},
    )


class _File:
    def __init__(self, name: str) -> None:
        self.properties: dict[str, Setting] = {}
        # In a dict, because a setting of several flows is reported once.
        self.findings: dict[Finding, None] = {}
        self._name = name

    def report(self, check: str, place: str | Origin, what: str, action: str = "") -> None:
        severity = FindingSeverity.ERROR if check in _ERRORS else FindingSeverity.WARNING
        why, usual_action = (_ERRORS | _WARNINGS)[check]
        if isinstance(place, str):
            setting = self.properties.get(place)
            place = setting.origin if setting else Origin(self._name)
        self.findings[Finding(check, severity, place, what, why, action or usual_action)] = None

    def parse(self, content: bytes) -> None:
        problem = "has no settings"
        if len(content) > _MOST_BYTES:
            problem = f"has {len(content):,} bytes; expected at most {_MOST_BYTES:,}"
        elif _CONTROL.search(content):
            problem = "has control characters, so it is not text"
        else:
            try:
                # MirrorMaker loads the file by Properties.load(InputStream), which is not UTF-8.
                for line in parse_properties(content.decode("iso-8859-1")):
                    self._add(line, Origin(self._name, line.number))
            except PropertiesError as error:
                self.properties.clear()
                problem = f"{error} on line {error.line}"
        if not self.properties:
            self.report("not-properties", "", f"the file {problem}")

    def _add(self, line: PropertyLine, origin: Origin) -> None:
        key = line.key
        if line.value.startswith("->") or key.endswith("->"):
            self.report("spaces-in-flow", origin, "the line has a space beside ->")
            return
        if key in self.properties:
            before = self.properties[key].origin.line
            self.report("duplicate-key", origin, f"{_shown(key)} is on line {before} as well")
        if _REGEX_KEY.search(key) and _LOST_BACKSLASH.search(line.source):
            self.report("lost-backslash", origin, f"{_shown(key)} has a single backslash")
        self.properties[key] = Setting(key, line.value, origin)

    def read_aliases(self) -> tuple[str, ...]:
        """The valid aliases of `clusters`."""
        setting = self.properties.get("clusters")
        aliases = tuple(dict.fromkeys(split_list(setting.value))) if setting else ()
        if len(aliases) > _MOST_CLUSTERS:
            what = f"clusters has {len(aliases)} aliases; expected at most {_MOST_CLUSTERS}"
            self.report("no-clusters", "clusters", what, "use a file for each group of clusters")
            return ()
        if not aliases and any(map(_OTHER_FORMAT.match, self.properties)):
            self.report("not-properties", "", "the file looks like YAML, JSON, XML or PEM")
        elif not aliases and self.properties:
            self.report("no-clusters", "clusters", "clusters is missing or empty")
        for alias in aliases:
            if not _ALIAS.fullmatch(alias):
                self.report("invalid-alias", "clusters", f"{alias[:50]!r} is not a cluster alias")
        return tuple(filter(_ALIAS.fullmatch, aliases))

    def cluster(self, alias: str, settings: DedicatedSettings) -> MirrorCluster:
        client = client_settings(settings.clusters[alias])
        if "bootstrap.servers" not in client:
            what, key = f"cluster {alias} has no bootstrap servers", f"{alias}.bootstrap.servers"
            self.report("no-bootstrap-servers", "clusters", what, f"add {key} = HOST:PORT")
        origin = client.get("bootstrap.servers", self.properties["clusters"]).origin
        return MirrorCluster(alias, client, origin)

    def flows(self, settings: DedicatedSettings) -> Iterator[MirrorFlow]:
        for flow in (Flow(*pair) for pair in permutations(settings.clusters, 2)):
            enabled = settings.of_flow(flow, "enabled")
            is_enabled = read_boolean(enabled.value) if enabled else False
            has_herder = settings.has_herder(flow)
            # MirrorMakerConfig.clusterPairs does not trim: `true ` starts no herder by itself.
            is_blank = is_enabled and not has_herder and enabled and enabled.value[-1:].isspace()
            if enabled and (is_enabled is None or is_blank):
                what = f"{enabled.key} is {enabled.value[:50]!r}; expected true or false"
                self.report("not-boolean", enabled.origin, what)
            if has_herder:
                origin = (enabled or self.properties["clusters"]).origin
                shared = settings.connector(flow)
                connectors = {
                    kind: Connector(kind, kind.value, shared, origin) for kind in ConnectorKind
                }
                yield MirrorFlow(
                    flow, connectors, settings.worker(flow), origin, enabled=bool(is_enabled)
                )

    def check_keys(self, aliases: list[str], enabled: list[Flow]) -> None:
        """Find keys that nothing reads, and keys that are read for two purposes."""
        pairs = [Flow(*pair) for pair in permutations(aliases, 2)]
        labels = [pair.label for pair in pairs]
        prefixes = (*_READ_PREFIXES, *(f"{label}." for label in labels))
        unread = []
        for key, setting in self.properties.items():
            owners = [alias for alias in aliases if key.startswith(f"{alias}.")]
            others = key in _TOP_LEVEL | _OF_CLUSTERS
            if others and owners:  # a key that the cluster does not read has one meaning
                others = any(_is_cluster_key(key.removeprefix(f"{each}.")) for each in owners)
            if owners and len(owners) + others > 1:
                what = f"{key} is also a setting of the cluster {min(owners, key=len)}"
                self.report("ambiguous-alias", setting.origin, what)
            if not owners and key not in _TOP_LEVEL and not key.startswith(prefixes):
                unread.append(setting)
        for setting in unread[:_MOST_UNREAD]:
            self._report_unread(setting, aliases, labels, enabled or pairs)
        if len(unread) > _MOST_UNREAD:
            what = f"{len(unread) - _MOST_UNREAD} further lines are not read by MirrorMaker 2"
            self.report("ignored-key", unread[_MOST_UNREAD].origin, what)

    def _report_unread(
        self, setting: Setting, aliases: list[str], labels: list[str], flows: list[Flow]
    ) -> None:
        key = setting.key
        scope, rest = _scope(key) if _SHOWN_KEY.fullmatch(key) else ("", key)
        if scope:
            meant = suggest(scope, labels if "->" in scope else aliases)
            what = f"{key}: {scope} is not in clusters"
            action = f"did you mean {meant}.{rest}?" if meant else ""
            self.report("unknown-alias", setting.origin, what, action)
            return
        clients = connector_settings.CLIENT_KEYS
        meant = connector_settings.suggest_connector_key(key) or suggest_typo(key, clients)
        action = f"did you mean {meant}?" if meant and meant not in self.properties else ""
        if _is_cluster_key(key):
            # Consumers of connectors read from the source; producers and workers use the target.
            roles = {"consumer.": ["source"], "admin.": ["source", "target"]}
            sides = next((s for start, s in roles.items() if key.startswith(start)), ["target"])
            owners = [getattr(flow, side) for flow in flows for side in sides]
            action = f"write {_joined(owners, key)}, with the {' or '.join(sides)} of the flow"
        elif flows and connector_settings.connector_key(key):
            action = f"write {_joined([flow.label for flow in flows], key)}, with the flow"
        what = f"{key if action else _shown(key)} is not a setting that MirrorMaker 2 reads"
        self.report("ignored-key", setting.origin, what, action)


def _shown(key: str) -> str:
    return key if _SHOWN_KEY.fullmatch(key) or key in _TOP_LEVEL else "the key of this line"


def _joined(prefixes: list[str], key: str) -> str:
    keys = [f"{each}.{key}" for each in dict.fromkeys(prefixes)]
    return " and ".join(keys) if len(keys) <= 3 else f"{keys[0]}, {keys[1]} and so on"


def _is_cluster_key(key: str) -> bool:
    of_clients = key.startswith(("producer.", "consumer.", "admin.")) and ".override." not in key
    return key in _OF_CLUSTERS or (of_clients and not connector_settings.unknown_client_key(key))


def _scope(key: str) -> tuple[str, str]:
    """Split a key with the prefix of a flow or cluster that does not exist; else ("", key)."""
    splits = [(key[: dot.start()], key[dot.end() :]) for dot in re.finditer(r"\.", key)]
    is_known = connector_settings.connector_key if "->" in key else _is_cluster_key
    otherwise = splits[0] if "->" in key and splits else ("", key)
    return next((split for split in splits if is_known(split[1])), otherwise)
