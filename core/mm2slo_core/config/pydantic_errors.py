"""Converts pydantic errors to problems, with the path in the file and without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.config.config_problems import NOT_WRITTEN
from mm2slo_core.config.config_schema import is_secret, keys_at
from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_core.config.suggestion import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic_core import ErrorDetails

    from mm2slo_core.config.config_layers import Layers
    from mm2slo_core.config.config_problems import Path, Problem

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


def show(value: object) -> str:
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
        return show(path[-1])
    value = layers.value(path)
    raised = error.get("ctx", {}).get("error")
    if isinstance(raised, InvalidValueError) and raised.hides_value:
        return "the value"
    # Text in place of a section or of a list of sections may be a misplaced password.
    is_section = keys_at(path) or keys_at((*path, 0))
    if is_secret(path) or (is_section and isinstance(value, str)):
        return "the value" if isinstance(value, str) else "the secret"
    return show(value)


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
