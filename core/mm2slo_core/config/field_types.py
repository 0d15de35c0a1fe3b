"""Field types that several sections share, and the base class of sections."""

import re
from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict

from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_core.java_regex import compile_java
from mm2slo_core.secret import Secret

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_ALIAS: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


class Section(BaseModel):
    """A section of the configuration: frozen, without unknown keys."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        use_attribute_docstrings=True,
        validate_default=False,
    )


def _topic_name(value: str) -> str:
    if not _TOPIC.fullmatch(value) or value in {".", ".."}:
        raise InvalidValueError(
            "is not a topic name",
            expected="1 to 249 letters, digits, dots, underscores and hyphens",
        )
    return value


def _alias(value: str) -> str:
    if not _ALIAS.fullmatch(value):
        raise InvalidValueError(
            "is not a cluster alias",
            expected="letters, digits, dots, underscores and hyphens, as in topic names",
            next_step="use the cluster alias from the MirrorMaker 2 configuration",
        )
    return value


def split_list(value: object) -> object:
    """Comma-separated text as a list, as MirrorMaker 2 accepts it."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _pattern(value: str) -> str:
    if "," in value:
        raise InvalidValueError(
            "contains a comma, at which MirrorMaker 2 splits lists",
            expected="one regular expression per list entry",
            next_step="write two entries, or the same expression without a comma",
        )
    try:
        compile_java(value)
    except ValueError as error:
        reason = str(error).replace(f" {value!r}: ", ": ", 1)
        raise InvalidValueError(
            f"cannot be used: {reason}",
            expected="a regular expression for whole names, such as orders.*",
        ) from None
    return value


def _property(value: object) -> object:
    # librdkafka and Spark expect the texts "true" and "5".
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return value


def _not_empty(value: str) -> str:
    if not value.strip():
        raise InvalidValueError("is empty", expected="text")
    return value


Flag = Annotated[bool, Strict()]
Whole = Annotated[int, Strict()]
Text = Annotated[str, AfterValidator(_not_empty)]
KafkaVersionText = Annotated[str, Field(pattern=r"^\d+\.\d+(\.\d+)?$")]
TopicName = Annotated[str, AfterValidator(_topic_name)]
Alias = Annotated[str, AfterValidator(_alias)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Patterns = Annotated[tuple[Pattern, ...], BeforeValidator(split_list)]
# Passed through to a client. Any of them may be a password, so all are secret.
Properties = Mapping[str, Annotated[Secret, BeforeValidator(_property)]]
