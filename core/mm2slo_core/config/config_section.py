"""`Section`, the base class of the models of mm2slo.yaml, which checks fields against each other.

pydantic stops at the first failing layer: a validator of a model does not run if one of its fields
is invalid. `Section.check` runs nevertheless, on the valid values, so that all problems of a file
are reported at once.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Self, TypeGuard, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from mm2slo_core.config.config_document import Path, value_at
from mm2slo_core.config.exporter_settings import Settings

CHECK_SECTIONS: Final = "check sections"
"""The context of a validation that runs `Section.check`."""
FINDING: Final = "section_finding"
"""The type of pydantic errors that `Section.check` found."""


class SectionFinding(NamedTuple):
    """A failed check of valid values together; *path* is relative to the checked section."""

    path: Path
    what: str
    expected: str
    next_step: str | None = None


class Example(NamedTuple):
    """An entry of a list or mapping in docs/reference-config.yaml, by the keys of the file."""

    value: Mapping[str, Any]
    comment: str = ""


class Section(BaseModel):
    """A section of the configuration: frozen, without unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        validate_default=False,
    )
    stand_ins: ClassVar[Mapping[str, object]] = {}
    """Values for required keys that are missing or invalid, so that `check` sees the others."""
    has_independent_fields: ClassVar[bool] = False
    """Whether a finding about a field is reliable although another one is invalid."""

    def check(self) -> Iterator[SectionFinding]:
        """What is wrong with values that are valid on their own."""
        return iter(())

    def as_settings(self) -> Settings:
        """The same values without models."""
        kind = next((each for each in type(self).__mro__ if _is_plain(each)), Settings)
        return kind.of({name: plain_value(value) for name, value in self})

    @model_validator(mode="wrap")
    @classmethod
    def _check(
        cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        # Only where a file is checked: settings of MirrorMaker 2 have checks of their own (lint).
        if info.context != CHECK_SECTIONS or cls.check is Section.check:
            return handler(data)
        section: Self | None
        errors: list[ErrorDetails] = []
        try:
            section = handler(data)
        except ValidationError as invalid:
            errors = validation_errors(invalid)
            # pydantic does not run validators after an error: one invalid value would hide others.
            section = readable(cls, data)
        rejected = rejected_paths(errors)
        findings = [
            InitErrorDetails(
                type=PydanticCustomError(FINDING, "is inconsistent", {"finding": each[1:]}),
                loc=each.path,
                input=None,
            )
            for each in (() if section is None else section.check())
            if not is_unreliable(
                each.path, rejected, cls.has_independent_fields and len(each.path) == 1
            )
        ]
        if section is not None and not errors and not findings:
            return section
        raise ValidationError.from_exception_data(cls.__name__, [*findings, *map(_again, errors)])


def _is_plain(kind: type) -> TypeGuard[type[Settings]]:
    return issubclass(kind, Settings) and not issubclass(kind, Section)


def plain_value(value: object) -> object:
    """*value* with `Settings` in place of sections."""
    match value:
        case Section():
            return value.as_settings()
        case tuple():
            return tuple(map(plain_value, value))
        case Mapping():
            return {key: plain_value(each) for key, each in value.items()}
    return value


def _again(error: ErrorDetails) -> InitErrorDetails:
    kind, context = error["type"], error.get("ctx", {})
    again = PydanticCustomError(FINDING, "is inconsistent", context) if kind == FINDING else kind
    return InitErrorDetails(type=again, loc=error["loc"], input=error["input"], ctx=context)


def validation_errors(invalid: ValidationError) -> list[ErrorDetails]:
    """The errors of *invalid*, except that lists of invalid entries have no entries.

    pydantic counts valid entries only.
    """
    return [
        error
        for error in invalid.errors(include_url=False)
        if error["type"] != "too_short" or not error["input"]
    ]


def rejected_paths(errors: Iterable[ErrorDetails]) -> list[Path]:
    """The paths of invalid values: not of unknown keys, and not of findings of sections."""
    return [each["loc"] for each in errors if each["type"] not in {"extra_forbidden", FINDING}]


def is_unreliable(path: Path, rejected: Iterable[Path], is_independent: bool) -> bool:
    """Whether a finding at *path* may report the default of a value that was *rejected*.

    That value is the found one, a section around it or, unless *is_independent*, one beside it.
    """
    return any(
        bad == path[: len(bad)] or (not is_independent and path[:-1] == bad[:-1])
        for bad in rejected
    )


_Section = TypeVar("_Section", bound=Section)


def readable(section: type[_Section], raw: object) -> _Section | None:
    """*raw* with defaults in place of invalid values; None if a required key remains missing."""
    if not isinstance(raw, dict):
        return None
    rest = copy.deepcopy(raw)
    try:
        return section.model_validate(raw)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False, include_input=False):
            *around, key = error["loc"] or ("",)
            # Only keys are removed: later errors refer to positions in lists.
            found = value_at(rest, tuple(around))
            if isinstance(found, dict):
                found.pop(key, None)
    try:
        return section.model_validate({**section.stand_ins, **rest})
    except ValidationError:
        # A required key further down is missing, which is already reported.
        return None
