"""Values of settings, as Kafka's `ConfigDef` and clients read them in Java.

Each function returns None for a value with which Kafka does not start.
"""

from __future__ import annotations

import re
from typing import Final

_SPACE: Final = "".join(map(chr, range(ord(" ") + 1)))
_LIST_COMMA: Final = re.compile(r"\s*,\s*", re.ASCII)
# `HOST_PORT_PATTERN` of Kafka's `Utils`; the clients ignore the protocol.
_SERVER: Final = re.compile(r"(?:[\w%.-]*://)?\[?([\w%.:-]*)\]?:([0-9]+)", re.ASCII)
_HIGHEST_PORT: Final = 65_535


def trim(text: str) -> str:
    """`String.trim`: without control characters and spaces at both ends, but with others."""
    return text.strip(_SPACE)


def read_boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(trim(text).lower())


def read_integer(text: str, bits: int = 64) -> int | None:
    """A whole number of *bits*; Java takes a sign and the digits of any script."""
    if not re.fullmatch(r"[+-]?\d{1,50}", trim(text)):
        return None
    number = int(trim(text))
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def split_list(text: str) -> tuple[str, ...]:
    """Split a list at every comma, also inside `a{1,3}`; entries may be empty."""
    return tuple(_LIST_COMMA.split(trim(text))) if trim(text) else ()


def read_servers(text: str) -> tuple[str, ...] | None:
    """The servers in `bootstrap.servers` as `host:port`, host in lower case; None if one is wrong.

    Clients skip empty entries. Whether names can be resolved is not checked.
    """
    matches = [_SERVER.fullmatch(each) for each in split_list(text) if each]
    found = []
    for match in matches:
        if match is None or not match[1] or not 0 < int(match[2]) <= _HIGHEST_PORT:
            return None
        host = f"[{match[1]}]" if ":" in match[1] else match[1]
        found.append(f"{host.lower()}:{int(match[2])}")
    return tuple(found) or None


def share_servers(one: str, other: str) -> bool:
    """Whether two values of `bootstrap.servers` lead to the same cluster, as far as they show."""
    known = {*(read_servers(one) or ())} & {*(read_servers(other) or ())}
    return bool(known) or bool(one and one == other)  # references are compared as written
