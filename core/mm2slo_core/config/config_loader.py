"""Loads mm2slo.yaml: text in, a validated `Config` or all of its problems out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import ValidationError

from mm2slo_core.config.config_checks import check_config
from mm2slo_core.config.config_layers import BaseConfig, Layers
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.config_problems import ConfigError, Problem, render_path, value_at
from mm2slo_core.config.mirror_files import MirrorFilesConfig
from mm2slo_core.config.pydantic_errors import problem_of
from mm2slo_core.config.secret_references import NO_RESOLVERS, Resolvers, resolve_references
from mm2slo_core.config.yaml_document import Document, parse_document

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pydantic_core import ErrorDetails

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
    rejected = [error["loc"] for error in errors if error["type"] != "extra_forbidden"]
    findings = check_config(layers.merged, rejected)
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
        return Config.model_validate(merged), []
    except ValidationError as invalid:
        errors = invalid.errors(include_url=False, include_input=False)
    # Pydantic counts valid entries only: a list of invalid entries is not empty.
    return None, [
        error
        for error in errors
        if error["type"] != "too_short" or not value_at(merged, error["loc"])
    ]


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
