"""Merges mm2slo.yaml over its `defaults:` and over MirrorMaker 2's own configuration."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_core.config.config_problems import Path, Problem, render_path
from mm2slo_core.config.flow_config import Engine
from mm2slo_core.config.suggestion import suggest
from mm2slo_core.config.yaml_paths import value_at
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mm2slo_core.config.yaml_document import Document

_MIRRORMAKER: Final = (None, Engine.MIRRORMAKER2.value)


@dataclass(frozen=True, slots=True)
class BaseConfig:
    """Clusters by alias and flows by label, from MirrorMaker 2's files.

    *origins* has the file and line of paths such as `("flows", "us->eu", "topics")`. If a file
    cannot be read, clusters and flows may be missing, and *is_complete* is false.
    """

    clusters: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    flows: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
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
    line: int | None
    file: str | None = None


class Layers:
    """The merged configuration with its problems and the origin of each value."""

    def __init__(self, document: Document, root: Mapping[str, object], base: BaseConfig) -> None:
        """*root* is the content of *document*, with references resolved."""
        self._document = document
        self._base = base
        self._origins = {
            path: _Origin(path, line, file) for path, (file, line) in base.origins.items()
        } | {path: _Origin(path, line) for path, line in document.lines.items()}
        self.problems = list(base.problems)
        self.merged = {key: value for key, value in root.items() if key != "defaults"}
        self._merge_clusters(root.get("clusters"))
        self._merge_flows(root.get("flows"), self._defaults(root.get("defaults")))

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
        return _Origin(path, None)

    def value(self, path: Path) -> object:
        """The merged value at *path*; that of mm2slo.yaml with its references unresolved."""
        found = self.origin(path)
        if found.file is None:
            return value_at(self._document.value, found.path)
        return value_at(self.merged, path)

    def _defaults(self, raw: object) -> dict[str, object]:
        if raw is None:
            return {}
        if not isinstance(raw, dict):
            what, expected = "is not a mapping", "fields of a flow, such as canary or topics"
            self.problems.append(self.problem(("defaults",), what, expected))
            return {}
        if "flow" in raw:
            what, expected = "is not allowed in defaults", "flow in each entry of flows"
            self.problems.append(self.problem(("defaults", "flow"), what, expected, "remove it"))
        return {key: value for key, value in raw.items() if key != "flow"}

    def _merge_clusters(self, written: object) -> None:
        base = self._base.clusters
        if not base or not isinstance(written, dict | None):
            return
        own = written or {}
        self.merged["clusters"] = {**base, **own} | {
            alias: _merge(base[alias], own[alias] or {})
            for alias in own
            if alias in base and isinstance(own[alias], dict | None)
        }
        for alias, entry in own.items():
            if alias not in base and isinstance(entry, dict) and "bootstrap_servers" not in entry:
                what = f"is missing, and MirrorMaker 2's files have no cluster {alias!r}"
                self._report_absent(("clusters", alias, "bootstrap_servers"), what, alias, base)

    def _merge_flows(self, written: object, defaults: dict[str, object]) -> None:
        base = self._base.flows
        if not isinstance(written, list | None) or not (written or base):
            return
        own = [(_label(entry), entry) for entry in written or []]
        labels = {label for label, _ in own}
        own += [(label, {"flow": label}) for label in base if label not in labels]
        self.merged["flows"] = [
            _merge(_merge(base.get(label, {}), defaults), entry)
            if isinstance(entry, dict)
            else entry
            for label, entry in own
        ]
        for index, (label, entry) in enumerate(own):
            self._add_origins(index, label)
            engine = entry.get("engine", defaults.get("engine")) if label else None
            if base and label and label not in base and engine in _MIRRORMAKER:
                what = f"{label!r} is not an enabled flow of MirrorMaker 2's files"
                self._report_absent(("flows", index, "flow"), what, label, base)

    def _add_origins(self, index: int, label: str) -> None:
        inherited = {
            ("flows", index, *path[depth:]): found
            for layer, depth in ((("flows", label), 2), (("defaults",), 1))
            for path, found in self._origins.items()
            if path[:depth] == layer and path != ("defaults",)
        }
        self._origins = inherited | self._origins

    def _report_absent(self, path: Path, what: str, name: str, known: Iterable[str]) -> None:
        if not self._base.is_complete:
            return
        close = suggest(name, known)
        hint = f"did you mean {close!r}?" if close else "remove it, or change MirrorMaker 2's files"
        self.problems.append(self.problem(path, what, f"one of {', '.join(known)}", hint))


def _merge(below: Mapping[str, object], over: Mapping[str, object]) -> dict[str, object]:
    """*over* on top of *below*: mappings are merged by key, other values are replaced."""
    merged = dict(below)
    for key, value in over.items():
        under = merged.get(key)
        if isinstance(under, dict) and isinstance(value, dict):
            merged[key] = _merge(under, value)
        else:
            merged[key] = value
    return merged


def _label(entry: object) -> str:
    """The label of the flow that *entry* configures, or ""."""
    text = entry.get("flow") if isinstance(entry, dict) else None
    try:
        return Flow.parse(text).label if isinstance(text, str) else ""
    except ValueError:
        return ""
