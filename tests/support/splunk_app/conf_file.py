"""Splunk's .conf format: stanzas, `key = value`, `\\` at the end of a line continues it."""

import re
from collections.abc import Iterator
from pathlib import Path

Conf = dict[str, dict[str, str]]
_STANZA = re.compile(r"\[(.*)\]\s*$")


def read_conf(path: Path, problems: list[str]) -> Conf:
    """Read a file; lines that Splunk would ignore become *problems*."""
    found: Conf = {}
    stanza: dict[str, str] | None = None
    for number, line in _logical_lines(path.read_text(encoding="utf-8")):
        header, (key, equals, value) = _STANZA.match(line), line.partition("=")
        where = f"{path.name}:{number}"
        if header is not None:
            if header[1] in found:
                problems.append(f"{where}: duplicate stanza [{header[1]}]")
            stanza = found.setdefault(header[1], {})
        elif not equals or stanza is None:
            problems.append(f"{where}: {line!r} is not key = value in a stanza")
        elif key.strip() in stanza:
            problems.append(f"{where}: duplicate key {key.strip()!r}")
        else:
            stanza[key.strip()] = value.strip()
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1]
        elif line.strip() and not (line.startswith("#") and not pending):
            yield start, pending + line
            pending = ""
        else:
            pending = ""
