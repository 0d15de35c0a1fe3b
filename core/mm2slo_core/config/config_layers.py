"""Merges mm2slo.yaml over its `defaults:` and over MirrorMaker 2's own configuration."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mm2slo_core.config.config_problems import Path, Problem, render_path, value_at
from mm2slo_core.config.flow_config import Engine
from mm2slo_core.config.suggestion import did_you_mean
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


def own_keys(root: Mapping[str, object]) -> defaultdict[tuple[str, str], set[str]]:
    """What mm2slo.yaml with the content *root* sets.

    Keys are `("clusters", "us")`, `("flows", "us->eu")` and `("defaults", "")`.
    """
    clusters, flows = root.get("clusters"), root.get("flows")
    entries: list[tuple[tuple[str, str], object]] = [(("defaults", ""), root.get("defaults"))]
    if isinstance(clusters, dict):
        entries += ((("clusters", alias), each) for alias, each in clusters.items())
    if isinstance(flows, list):
        entries += ((("flows", _label(each)), each) for each in flows)
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name, entry in entries:
        found[name].update(entry if isinstance(entry, dict) else ())
    return found


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
        self._places: dict[Path, tuple[str | None, int | None]] = {**base.origins}
        self._places |= {path: (None, line) for path, line in document.lines.items()}
        self._labels: dict[int | str, str] = {}
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
            around = [path[:end]]
            if path[0] == "flows" and end > 1:
                # A value that is not written belongs to its flow, not to a section of `defaults`.
                around += [("defaults", *path[2:])] * (2 < end == len(path))
                around.append(("flows", self._labels.get(path[1], ""), *path[2:end]))
            for each in around:
                if each in self._places:
                    return _Origin((*each, *path[end:]), *self._places[each])
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
            label = self._labels[index] = _label(entry)
            flow = _merge(_merge(base.get(label, {}), defaults), entry)
            yield flow
            # Other engines are not in MirrorMaker 2's files.
            engine = flow.get("engine", Engine.MIRRORMAKER2) if isinstance(flow, dict) else None
            is_known = not (base and label) or label in base or engine != Engine.MIRRORMAKER2
            if not is_known and self._base.is_complete:
                what = f"{label!r} is not an enabled flow of MirrorMaker 2's files"
                next_step = did_you_mean(label, base, "remove it, or enable it there")
                place, expected = ("flows", index, "flow"), f"one of {', '.join(base)}"
                self.problems.append(self.problem(place, what, expected, next_step))


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
