"""Loads mm2slo.yaml: text in, a validated `Config` or all of its problems out.

Sections are merged over `defaults:` and MirrorMaker 2's own configuration (`config_layers`).
pydantic's errors become problems with the path in the file and without secrets. No file is opened
and no environment variable read: the caller passes `Resolvers`.
"""

import types
import typing
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mm2slo_core.config.config_checks import check_config, flow_of
from mm2slo_core.config.config_document import (
    NO_RESOLVERS,
    NOT_WRITTEN,
    ConfigError,
    Document,
    Path,
    Problem,
    Resolvers,
    did_you_mean,
    parse_document,
    render_path,
    resolve_references,
    value_at,
)
from mm2slo_core.config.config_model import Config, MirrorFilesConfig
from mm2slo_core.config.config_section import (
    CHECK_SECTIONS,
    FINDING,
    SectionFinding,
    rejected_paths,
    validation_errors,
)
from mm2slo_core.config.exporter_settings import Engine
from mm2slo_core.config.secret import Secret
from mm2slo_core.quantity_text import InvalidValueError


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


# Reads what `mm2:` refers to; the second argument is the content of mm2slo.yaml.
BaseReader = Callable[[MirrorFilesConfig, Mapping[str, object]], BaseConfig]

# Without all of MirrorMaker 2's files, these are incomplete.
_FROM_FILES: Final = frozenset({"clusters", "flows", "slo"})
_INCOMPLETE: Final = frozenset({"missing", "too_short"})


def load_config(
    text: str,
    *,
    resolvers: Resolvers = NO_RESOLVERS,
    name: str = "mm2slo.yaml",
    read_base: BaseReader = lambda _files, _root: BaseConfig(),
) -> Config:
    """Parse and validate *text*; *name* is the file name for the report.

    *read_base* returns what lies below *text*, from MirrorMaker 2's files. Raises ConfigError with
    all problems: YAML, keys, types, values, references and combinations.
    """
    document = parse_document(text)
    resolved, unresolved = resolve_references(document, resolvers)
    if not isinstance(resolved, dict):
        shape = [] if document.problems else [_not_a_mapping(document)]
        raise ConfigError(name, [*document.problems, *shape])
    base = _read_base(resolved, read_base)
    layers = Layers(document, resolved, base)
    found = [*document.problems, *unresolved, *layers.problems]
    places = {_place(problem) for problem in found}
    config, errors = _validate(layers.merged)
    findings = [
        SectionFinding(error["loc"], *error["ctx"]["finding"])
        for error in errors
        if error["type"] == FINDING
    ]
    findings += check_config(layers.merged, rejected_paths(errors))
    errors = [error for error in errors if error["type"] != FINDING]
    if not base.is_complete:
        errors = [error for error in errors if error["type"] not in _INCOMPLETE]
        findings = [finding for finding in findings if finding.path[0] not in _FROM_FILES]
    # Further problems at the path of a failed reference or a duplicate key are not reliable.
    found += [
        problem
        for problem in (
            *(problem_of(error, layers) for error in errors),
            *(layers.problem(*finding) for finding in findings),
        )
        if _place(problem) not in places
    ]
    if found or config is None:
        raise ConfigError(name, _in_file_order(found))
    return config


def _read_base(root: Mapping[str, object], read_base: BaseReader) -> BaseConfig:
    try:
        files = MirrorFilesConfig.model_validate(root.get("mm2", {}))
    except ValidationError:
        # Reported by the validation of the whole file.
        files = MirrorFilesConfig()
    return read_base(files, root)


def _validate(merged: dict[str, object]) -> tuple[Config | None, list[ErrorDetails]]:
    try:
        return Config.model_validate(merged, context=CHECK_SECTIONS), []
    except ValidationError as invalid:
        return None, validation_errors(invalid)


def _place(problem: Problem) -> tuple[str | None, object]:
    return problem.file, problem.path if problem.file is None else problem.line


def _in_file_order(problems: Iterable[Problem]) -> list[Problem]:
    # A problem in `defaults` is found once per flow.
    return sorted(
        dict.fromkeys(problems), key=lambda problem: (problem.file or "", problem.line or 0)
    )


def _not_a_mapping(document: Document) -> Problem:
    what = "is empty" if document.value is None else "is not a mapping"
    next_step = "start from docs/reference-config.yaml"
    return Problem(render_path(()), what, "a mapping with clusters and flows", next_step)


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
    flow = flow_of(entry)
    return "" if flow is None else flow.label


_LONGEST_VALUE: Final = 80

_WRONG_TYPES: Final = {
    "string_type": "text; quote it if YAML reads it as another type",
    "bool_type": "true or false",
    "int_type": "a whole number",
    **dict.fromkeys(("model_type", "model_attributes_type", "dict_type"), "a mapping with keys"),
    "mapping_type": "a mapping with keys",
    "tuple_type": "a list",
    "string_too_short": "text that is not empty",
}

# What is wrong, and what is expected as a format string of pydantic's context.
_REASONS: Final = {
    "enum": ("is not a valid value", "{expected}"),
    "literal_error": ("is not a valid value", "{expected}"),
    "greater_than_equal": ("is too small", "at least {ge}"),
    "too_short": ("has no entries", "at least one entry"),
    "string_pattern_mismatch": ("has the wrong format", "text that matches {pattern}"),
}
_KEY_LIST: Final = "docs/configuration.md lists every key"


def show_value(value: object) -> str:
    """A value in a report: shortened, and without the content of containers."""
    if value is None or value is NOT_WRITTEN:
        return "no value"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else text[:_LONGEST_VALUE] + "..."


def problem_of(error: ErrorDetails, layers: Layers) -> Problem:
    """The problem for *error*, where the value was written."""
    kind, path = error["type"], error["loc"]
    # The location of an invalid mapping key ends in "[key]", which is not in the file.
    path = path[:-1] if path[-1:] == ("[key]",) else path
    next_step: str | None
    if kind == "extra_forbidden":
        what, expected, next_step = _unknown_key(layers.origin(path).path)
    elif kind == "missing":
        what, expected, next_step = "is missing", "a value for this key", _KEY_LIST
    else:
        reason, expected, next_step = reason_of(error)
        what = f"{_subject(error, path, layers)} {reason}"
    return layers.problem(path, what, expected, next_step)


def _subject(error: ErrorDetails, path: Path, layers: Layers) -> str:
    if error["loc"][-1:] == ("[key]",):
        return show_value(path[-1])
    value = layers.value(path)
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, InvalidValueError) and raised.hides_value:
        return "the value"
    # Text in place of a section or of a list of sections may be a misplaced password.
    is_section = keys_at(path) or keys_at((*path, 0))
    if is_secret(path) or (is_section and isinstance(value, str)):
        return "the value" if isinstance(value, str) else "the secret"
    return show_value(value)


def _unknown_key(path: Path) -> tuple[str, str, str]:
    known = keys_at(path[:-1])
    expected = f"one of {', '.join(known)}" if known else "no key here"
    return "unknown key", expected, did_you_mean(str(path[-1]), known, f"remove it; {_KEY_LIST}")


def reason_of(error: ErrorDetails) -> tuple[str, str, str | None]:
    """What is wrong with a value, what is expected, and the next step; the value is not quoted."""
    context: Mapping[str, Any] = error.get("ctx", {})
    raised = context.get("error")
    if isinstance(raised, InvalidValueError):
        return raised.what, raised.expected, raised.next_step
    if error["type"] in _REASONS:
        what, expected = _REASONS[error["type"]]
        return what, expected.format_map(context), None
    return "has the wrong type", _WRONG_TYPES.get(error["type"], error["msg"]), None


def annotation_at(path: Path) -> Any | None:
    """The type of *path* without Annotated and `| None`; None for an unknown path.

    `defaults` has the type of a flow.
    """
    if path[:1] == ("defaults",):
        path = ("flows", 0, *path[1:])
    found: Any = Config
    for part in path:
        found = _inner(bare_annotation(found), part)
        if found is None:
            return None
    return bare_annotation(found)


def keys_at(path: Path) -> tuple[str, ...]:
    """The keys of the section at *path*; empty if it is not a section."""
    found = annotation_at(path)
    keys = tuple(found.model_fields) if is_model(found) else ()
    # `defaults` is merged before validation and is not part of the models.
    return (*keys, "defaults") if found is Config else keys


def is_secret(path: Path) -> bool:
    """Whether the value at *path* must not be shown: a secret, or an unknown path."""
    found = annotation_at(path)
    return found is None or found is Secret


def is_model(annotation: object) -> typing.TypeGuard[type[BaseModel]]:
    """Whether *annotation* is a section."""
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def bare_annotation(annotation: Any) -> Any:
    """*annotation* without Annotated and without `| None`."""
    if typing.get_origin(annotation) is typing.Annotated:
        return bare_annotation(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in {typing.Union, types.UnionType}:
        left = [part for part in typing.get_args(annotation) if part is not type(None)]
        return bare_annotation(left[0]) if len(left) == 1 else annotation
    return annotation


def _inner(annotation: Any, part: str | int) -> Any | None:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if is_model(annotation) and isinstance(part, str):
        info = annotation.model_fields.get(part)
        return None if info is None else info.annotation
    if origin is tuple and isinstance(part, int):
        return arguments[0]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return arguments[1]
    return None
