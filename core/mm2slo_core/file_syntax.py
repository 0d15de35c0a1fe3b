"""Java properties files and YAML as text: few escapes, keys in order, line numbers."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import javaproperties
import yaml

_ESCAPED = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}
# Properties.load ends a key at the first of = : and space, and takes # and ! at its start for a
# comment.
_ESCAPED_IN_KEY = {**_ESCAPED, "=": "\\=", ":": "\\:", " ": "\\ ", "#": "\\#", "!": "\\!"}


class PropertyLine(NamedTuple):
    """A property, the number of its first line, and the line as written, if continued joined."""

    number: int
    key: str
    value: str
    source: str


class PropertiesError(ValueError):
    """An invalid escape on *line*; the text has nothing of the file, which may be a secret."""

    def __init__(self, line: int) -> None:
        super().__init__("has \\u without four hexadecimal digits after it")
        self.line = line


def parse_properties(text: str) -> Iterator[PropertyLine]:
    """Yield what `java.util.Properties.load` reads from *text*; raises PropertiesError."""
    for number, line in _logical_lines(text):
        try:
            for element in javaproperties.parse(line):
                if isinstance(element, javaproperties.KeyValue):
                    # Java encodes half of a surrogate pair as a question mark.
                    key, value = (
                        part.encode(errors="replace").decode()
                        for part in (element.key, element.value)
                    )
                    yield PropertyLine(number, key, value, element.source)
        except javaproperties.InvalidUEscapeError:
            raise PropertiesError(number) from None


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


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; joins continued lines, which javaproperties does very slowly."""
    parts: list[str] = []
    first = 1
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        first = first if parts else number
        part = line.lstrip(" \t\f")
        is_comment = not parts and part.startswith(("#", "!"))
        continues = not is_comment and (len(part) - len(part.rstrip("\\"))) % 2 == 1
        parts.append(part[:-1] if continues else part)
        if not continues:
            yield first, "".join(parts)
            parts = []
    yield first, "".join(parts)


# YAML 1.2 reads these as numbers, PyYAML's YAML 1.1 does not, and so would not quote them.
# Also y and n: booleans of YAML 1.1 for kubectl, unlike for PyYAML.
_QUOTED: Final = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?|0o[0-7]+|[yYnN]", re.ASCII)


def dump_yaml(document: object, header: str = "") -> str:
    """Return *header* and *document* as YAML; multi-line strings are literal blocks."""
    body = yaml.dump(
        document, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True, indent=2
    )
    return f"{header}{body}"


class _Dumper(yaml.SafeDumper):
    """Indents lists below their key and writes no anchors."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else "'" if _QUOTED.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
