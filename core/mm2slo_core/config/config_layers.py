"""Merges mm2slo.yaml over its `defaults:` and over MirrorMaker 2's own configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.config.config_problems import Path, Problem, render_path
from mm2slo_core.config.flow_config import Engine
from mm2slo_core.config.suggestion import suggest
from mm2slo_core.config.yaml_paths import value_at
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mm2slo_core.config.yaml_document import Document


@dataclass(frozen=True, slots=True)
class BaseConfig:
    """Clusters by alias and flows by label, from MirrorMaker 2's files.

    *origins* has the file and line of `("clusters", "us", "bootstrap_servers")`, for example. If a
    file cannot be read, clusters and flows may be missing, and *is_complete* is false.
    """

    clusters: Mapping[str, dict[str, object]] = field(default_factory=dict)
    flows: Mapping[str, dict[str, object]] = field(default_factory=dict)
    origins: Mapping[Path, tuple[str, int | None]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    is_complete: bool = True


def own_keys(root: Mapping[str, object], section: str, name: str) -> set[str]:
    """The keys that mm2slo.yaml with the content *root* sets for a cluster or flow."""
    written = root.get(section)
    if isinstance(written, dict):
        entries = [written.get(name)]
    else:
        flows = written if isinstance(written, list) else []
        entries = [root.get("defaults"), *(each for each in flows if _label(each) == name)]
    return {key for each in entries if isinstance(each, dict) for key in each}


class _Origin(NamedTuple):
    """Where a merged value was written; *file* is None for mm2slo.yaml."""

    path: Path
    file: str | None = None
    line: int | None = None


class Layers:
    """The merged configuration with its problems and the origin of each value."""

    def __init__(self, document: Document, root: Mapping[str, object], base: BaseConfig) -> None:
        """*root* is the content of *document*, with references resolved."""
        self._document = document
        self._base = base
        self._origins = {path: _Origin(path, *place) for path, place in base.origins.items()}
        self._origins |= {path: _Origin(path, None, line) for path, line in document.lines.items()}
        self.problems = list(base.problems)
        self.merged = {key: value for key, value in root.items() if key != "defaults"}
        written = {key: value for key, value in root.items() if value is not None}
        clusters, flows = written.get("clusters", {}), written.get("flows", [])
        if base.clusters and isinstance(clusters, dict):
            own = {alias: {} if entry is None else entry for alias, entry in clusters.items()}
            self.merged["clusters"] = _merge(base.clusters, own)
        defaults = self._defaults(written.get("defaults", {}))
        if (base.flows or flows) and isinstance(flows, list):
            self.merged["flows"] = list(self._flows(flows, defaults))

    def problem(
        self, path: Path, what: str, expected: str | None, next_step: str | None = None
    ) -> Problem:
        """A problem of the merged value at *path*."""
        found = self.origin(path)
        place = render_path(found.path)
        return Problem(place, what, expected, next_step, found.line, file=found.file)

    def origin(self, path: Path) -> _Origin:
        """The origin of the merged value at *path*, or of the nearest section around it."""
        for end in range(len(path), 0, -1):
            found = self._origins.get(path[:end])
            # A value that is not written belongs to its flow, not to a section of `defaults`.
            if found and (end == len(path) or found.path[0] != "defaults"):
                return found._replace(path=(*found.path, *path[end:]))
        return _Origin(path)

    def value(self, path: Path) -> object:
        """The merged value at *path*; that of mm2slo.yaml with its references unresolved."""
        found = self.origin(path)
        if found.file is None:
            return value_at(self._document.value, found.path)
        return value_at(self.merged, path)

    def _defaults(self, raw: object) -> dict[str, object]:
        if not isinstance(raw, dict):
            what, expected = "is not a mapping", "fields of a flow, such as canary or topics"
            self.problems.append(self.problem(("defaults",), what, expected))
            return {}
        if "flow" in raw:
            what, expected = "is not allowed in defaults", "flow in each entry of flows"
            self.problems.append(self.problem(("defaults", "flow"), what, expected, "remove it"))
        return {key: value for key, value in raw.items() if key != "flow"}

    def _flows(self, written: list[object], defaults: dict[str, object]) -> Iterator[object]:
        base = self._base.flows
        labels = {_label(entry) for entry in written}
        more = ({"flow": label} for label in base if label not in labels)
        for index, entry in enumerate([*written, *more]):
            label = _label(entry)
            self._inherit_origins(index, label)
            flow = _merge(_merge(base.get(label, {}), defaults), entry)
            yield flow
            # Other engines are not in MirrorMaker 2's files.
            engine = flow.get("engine", Engine.MIRRORMAKER2) if isinstance(flow, dict) else None
            is_known = not (base and label) or label in base or engine != Engine.MIRRORMAKER2
            if not is_known and self._base.is_complete:
                close = suggest(label, base)
                self.problems.append(
                    self.problem(
                        ("flows", index, "flow"),
                        f"{label!r} is not an enabled flow of MirrorMaker 2's files",
                        f"one of {', '.join(base)}",
                        f"did you mean {close!r}?" if close else "remove it, or enable it there",
                    )
                )

    def _inherit_origins(self, index: int, label: str) -> None:
        inherited = {
            ("flows", index, *path[depth:]): found
            for layer, depth in ((("flows", label), 2), (("defaults",), 1))
            for path, found in self._origins.items()
            if path[:depth] == layer and path != ("defaults",)
        }
        self._origins = inherited | self._origins


def _merge(below: object, over: object) -> object:
    """*over* on top of *below*: mappings are merged by key, other values are replaced."""
    if isinstance(below, dict) and isinstance(over, dict):
        return below | {key: _merge(below.get(key), value) for key, value in over.items()}
    return over


def _label(entry: object) -> str:
    """The label of the flow that *entry* configures, or ""."""
    text = entry.get("flow") if isinstance(entry, dict) else None
    try:
        return Flow.parse(text).label if isinstance(text, str) else ""
    except ValueError:
        return ""
