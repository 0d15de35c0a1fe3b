"""Java properties files, readable: only what must be escaped is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
_ESCAPED_IN_KEY = {**_ESCAPED, "=": "\\=", ":": "\\:", " ": "\\ ", "#": "\\#", "!": "\\!"}


def dump_properties(properties: Mapping[str, str]) -> str:
    r"""A file that `java.util.Properties.load` reads back as *properties*.

    Written in ASCII: what is beyond becomes `\uXXXX` in UTF-16 units, as the format demands.
    """
    return "".join(f"{_key(key)}={_value(value)}\n" for key, value in properties.items())


def _key(text: str) -> str:
    return _ascii("".join(_ESCAPED_IN_KEY.get(character, character) for character in text))


def _value(text: str) -> str:
    escaped = "".join(_ESCAPED.get(character, character) for character in text)
    # Leading spaces of a value would be skipped as space after the separator.
    return _ascii(f"\\{escaped}" if escaped.startswith(" ") else escaped)


def _ascii(text: str) -> str:
    return "".join(
        character
        if character.isascii()
        else "".join(
            f"\\u{unit:04x}" for unit in memoryview(character.encode("utf-16-le")).cast("H")
        )
        for character in text
    )
