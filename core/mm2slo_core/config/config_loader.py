"""Loads mm2slo.yaml: text in, a validated `Config` or all of its problems out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from mm2slo_core.config.config_checks import check_config
from mm2slo_core.config.config_model import Config
from mm2slo_core.config.config_problems import ConfigError, Problem, render_path
from mm2slo_core.config.flow_defaults import merge, origin
from mm2slo_core.config.pydantic_errors import problem_of
from mm2slo_core.config.secret_references import NO_RESOLVERS, Resolvers, resolve_references
from mm2slo_core.config.yaml_document import Document, parse_document
from mm2slo_core.config.yaml_paths import value_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

    from mm2slo_core.config.section_checks import Finding


def load_config(
    text: str, *, resolvers: Resolvers = NO_RESOLVERS, name: str = "mm2slo.yaml"
) -> Config:
    """Parse and validate *text*; *name* is the file name for the report.

    Raises ConfigError with all problems: YAML, keys, types, values, references and combinations.
    """
    document = parse_document(text)
    resolved, unresolved = resolve_references(document, resolvers)
    if not isinstance(resolved, dict):
        shape = [] if document.problems else [_not_a_mapping(document)]
        raise ConfigError(name, [*document.problems, *shape])
    merged, misplaced = _merge_defaults(resolved, document)
    found = [*document.problems, *unresolved, *misplaced]
    places = {problem.path for problem in found}
    config, errors = _validate(merged)
    invalid = [
        problem_of(error, origin(error["loc"], document.value), document) for error in errors
    ]
    rejected = [error["loc"] for error in errors if error["type"] != "extra_forbidden"]
    findings = [_problem(finding, document) for finding in check_config(merged, rejected)]
    # Further problems at the path of a failed reference or a duplicate key are not reliable.
    found += [problem for problem in (*invalid, *findings) if problem.path not in places]
    if found or config is None:
        raise ConfigError(name, _in_file_order(found))
    return config


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


def _problem(finding: Finding, document: Document) -> Problem:
    path = origin(finding.path, document.value)
    return Problem(
        render_path(path),
        finding.what,
        finding.expected,
        finding.next_step,
        document.line_of(path),
    )


def _in_file_order(problems: Iterable[Problem]) -> list[Problem]:
    # A problem in `defaults` is found once per flow.
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.line or 0)


def _not_a_mapping(document: Document) -> Problem:
    what = "is empty" if document.value is None else "is not a mapping"
    return Problem(
        render_path(()), what, "a mapping with clusters and flows",
        "start from docs/reference-config.yaml",
    )  # fmt: skip


def _merge_defaults(
    root: dict[str, object], document: Document
) -> tuple[dict[str, object], list[Problem]]:
    merged = {key: value for key, value in root.items() if key != "defaults"}
    defaults = root.get("defaults")
    if defaults is None:
        return merged, []
    if not isinstance(defaults, dict):
        path = ("defaults",)
        what, expected = "is not a mapping", "fields of a flow, such as canary or topics"
        return merged, [Problem("defaults", what, expected, None, document.line_of(path))]
    problems = []
    if "flow" in defaults:
        line = document.line_of(("defaults", "flow"))
        what, expected = "is not allowed in defaults", "flow in each entry of flows"
        problems.append(Problem("defaults.flow", what, expected, "remove it", line))
        defaults = {key: value for key, value in defaults.items() if key != "flow"}
    flows = root.get("flows")
    if isinstance(flows, list):
        merged["flows"] = [
            merge(defaults, flow) if isinstance(flow, dict) else flow for flow in flows
        ]
    return merged, problems
