"""Texts that become labels, receivers and chat messages, so that they need escaping nowhere."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator

from mm2slo_core.config.refusal import Refusal

_LONGEST: Final = 80
_NAME: Final = re.compile(r"[^\W_](?:[\w ./@#+-]*[\w+])?")
_NAME_CHARACTERS: Final = "letters, digits, spaces and . / @ # + - _"
# Of a web address without a query, what neither YAML, Go templates nor Slack's markup read.
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9._~:/\[\]%@#!+,;=-]+", re.ASCII)
_PATTERN: Final = re.compile(r"[A-Za-z0-9._*?-]+(?:->[A-Za-z0-9._*?-]+)?", re.ASCII)
# The address of a webhook is a secret, wherever it was put by mistake.
_ADDRESS_SIGN: Final = "://"
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _name(value: str) -> str:
    if len(value) > _LONGEST:
        raise Refusal(
            f"has {len(value):,} characters",
            expected=f"a name of up to {_LONGEST} characters",
            hides_value=_ADDRESS_SIGN in value,
        )
    if not _NAME.fullmatch(value):
        wrong = sorted({character for character in value if not _in_names(character)})
        what = f"holds {', '.join(map(repr, wrong))}" if wrong else "starts or ends with a sign"
        raise Refusal(
            f"{what}, and stands in labels and chat messages",
            expected=f"{_NAME_CHARACTERS}; a letter or digit first and last",
            next_step="leave out what has a meaning in YAML, templates or Slack's markup",
            hides_value=_ADDRESS_SIGN in value,
        )
    return value


def _in_names(character: str) -> bool:
    return _NAME.fullmatch(f"a{character}a") is not None


def _flow_pattern(value: str) -> str:
    if not _PATTERN.fullmatch(value):
        raise Refusal(
            "is no pattern of flows",
            expected="source->target, with * for any text and ? for any character, or *",
            next_step="write for example us->eu, us->* or *",
            hides_value=_ADDRESS_SIGN in value,
        )
    return value


def _address(value: str) -> str:
    try:
        parts = urlsplit(value) if _ADDRESS.fullmatch(value) else None
    except ValueError:
        # A bracket that is not closed.
        parts = None
    if parts is None or not parts.hostname or parts.query or parts.fragment:
        raise Refusal(
            "is not a base address",
            expected="http://host/path or https://host/path without a query",
            next_step="leave out what follows ? or #",
            hides_value="@" in value,
        )
    if parts.username or parts.password:
        raise Refusal(
            "holds a user name or password, and goes into every message",
            expected="an address without credentials",
            next_step="remove what stands before the @",
            hides_value=True,
        )
    return value.rstrip("/")


def _secret_file(value: str) -> str:
    if _ADDRESS_SIGN in value:
        raise Refusal(
            "is an address, and an address like this is a secret",
            expected="the path of a file that holds it",
            next_step="write the address into a file that only Alertmanager can read",
            hides_value=True,
        )
    return _file(value)


def _file(value: str) -> str:
    if not value.strip() or _CONTROL.search(value):
        raise Refusal(
            "is empty or holds control characters", expected="the path of a file, on one line"
        )
    return value


Name = Annotated[str, AfterValidator(_name)]
FlowPattern = Annotated[str, AfterValidator(_flow_pattern)]
Address = Annotated[str, AfterValidator(_address)]
FilePath = Annotated[str, AfterValidator(_file)]
SecretFile = Annotated[str, AfterValidator(_secret_file)]
