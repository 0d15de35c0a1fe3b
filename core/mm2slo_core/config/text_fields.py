"""Types of texts that appear in labels, receivers and messages and never need escaping."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator

from mm2slo_core.config.invalid_value import InvalidValueError

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
