"""Field types that several sections share.

Texts that appear in labels, receivers and messages never need escaping.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, Strict

from mm2slo_core.config.secret import Secret
from mm2slo_core.java_values import compile_java
from mm2slo_core.quantity_text import DurationBound, InvalidValueError, parse_share, parse_target

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_ALIAS: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)


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
    return _alternatives((value,))[0]


def _alternatives(values: tuple[str, ...]) -> tuple[str, ...]:
    pattern = "|".join(values)  # as MirrorMaker 2 uses them
    try:
        compile_java(pattern)
    except ValueError as error:
        reason = str(error).replace(f" {pattern!r}: ", ": ", 1)
        raise InvalidValueError(
            f"cannot be used: {reason}",
            expected="a regular expression for whole names, such as orders.*",
        ) from None
    return values


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
Patterns = Annotated[
    tuple[Pattern, ...], BeforeValidator(split_list), AfterValidator(_alternatives)
]

# Positive: an interval of 0 would be a busy loop, and no canary could meet a deadline of 0.
Duration = Annotated[float, BeforeValidator(DurationBound(0.001))]

# For requests that are repeated on a cluster.
Interval = Annotated[float, BeforeValidator(DurationBound(0.1))]
SlowInterval = Annotated[float, BeforeValidator(DurationBound(1.0))]
Share = Annotated[float, BeforeValidator(parse_share)]
Target = Annotated[float, BeforeValidator(parse_target)]


# Passed through to a client. Any of them may be a password, so all are secret.
Properties = Mapping[str, Annotated[Secret, BeforeValidator(_property)]]
_MAX_LENGTH: Final = 80
_NAME: Final = re.compile(r"[^\W_](?:[\w ./@#+-]*[\w+])?")
_NAME_CHARACTERS: Final = "letters, digits, spaces and . / @ # + - _"

# URLs without a query and without characters that are special in YAML, Go templates or Slack.
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9._~:/\[\]%@#!+,;=-]+", re.ASCII)
_PATTERN: Final = re.compile(r"[A-Za-z0-9._*?-]+(?:->[A-Za-z0-9._*?-]+)?", re.ASCII)

# A webhook URL is a secret, even if it is misplaced.
_URL_MARK: Final = "://"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _name(value: str) -> str:
    if len(value) > _MAX_LENGTH:
        raise InvalidValueError(
            f"has {len(value):,} characters",
            expected=f"a name of up to {_MAX_LENGTH} characters",
            hides_value=_URL_MARK in value,
        )
    if not _NAME.fullmatch(value):
        invalid = sorted({each for each in value if not _NAME.fullmatch(f"a{each}a")})
        what = "starts or ends with a special character"
        if invalid:
            what = f"contains {', '.join(map(repr, invalid))}"
        raise InvalidValueError(
            f"{what}, but is used in labels and chat messages",
            expected=f"{_NAME_CHARACTERS}; a letter or digit first and last",
            next_step="remove characters that are special in YAML, templates or Slack markup",
            hides_value=_URL_MARK in value,
        )
    return value


def _channel_name(value: str) -> str:
    _name(value.removeprefix("#"))
    return value


def _flow_pattern(value: str) -> str:
    if not _PATTERN.fullmatch(value):
        raise InvalidValueError(
            "is not a flow pattern",
            expected="source->target, with * for any text and ? for any character, or *",
            next_step="write us->eu, us->* or *, for example",
            hides_value=_URL_MARK in value,
        )
    return value


def _address(value: str) -> str:
    try:
        parts = urlsplit(value) if _ADDRESS.fullmatch(value) else None
    except ValueError:
        parts = None  # an unclosed bracket
    if parts is None or not parts.hostname or parts.query or parts.fragment:
        raise InvalidValueError(
            "is not a base URL",
            expected="http://host/path or https://host/path without a query",
            next_step="remove ? or # and what follows",
            hides_value="@" in value,
        )
    if "@" in value:  # a password with / is no part of what a parser takes for credentials
        raise InvalidValueError(
            "contains a user name or password, but appears in messages",
            expected="a URL without credentials",
            next_step="remove everything before the @, and the @",
            hides_value=True,
        )
    return value.rstrip("/")


def _secret_file(value: str) -> str:
    if _URL_MARK in value:
        raise InvalidValueError(
            "is a URL, and webhook URLs are secrets",
            expected="the path of a file that contains the URL",
            next_step="write the URL to a file that only Alertmanager can read",
            hides_value=True,
        )
    return _file(value)


def _file(value: str) -> str:
    if not value.strip() or _CONTROL.search(value):
        raise InvalidValueError(
            "is empty or contains control characters", expected="the path of a file, on one line"
        )
    return value


Name = Annotated[str, AfterValidator(_name)]
ChannelName = Annotated[str, AfterValidator(_channel_name)]
FlowPattern = Annotated[str, AfterValidator(_flow_pattern)]
Address = Annotated[str, AfterValidator(_address)]
FilePath = Annotated[str, AfterValidator(_file)]
SecretFile = Annotated[str, AfterValidator(_secret_file)]
_CREDENTIALS: Final = re.compile(r"\A(?P<scheme>[^:/?#]+://)(?P<pair>[^:/?#]*:.*)@", re.DOTALL)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def escape_credentials(url: str) -> str:
    """*url* with user and password, which end at the last `@`, percent-encoded where they are not.

    Parsers of URLs end a password at the first `@` or `/`, and take the rest for the host.
    """
    return _CREDENTIALS.sub(
        lambda match: f"{match['scheme']}{quote(match['pair'], safe=':%')}@", url
    )


def may_carry_secrets(url: SplitResult) -> bool:
    """Whether requests to *url* cannot be read on the network: https, or http on loopback."""
    is_local = url.scheme == "http" and url.hostname in _LOOPBACK
    return bool(url.hostname) and (url.scheme == "https" or is_local)
