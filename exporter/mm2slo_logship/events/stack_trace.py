"""Java stack traces and lines that continue an event (pure)."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TYPE: Final = r"(?P<type>[a-zA-Z_$][\w$]*(?:\.[\w$]+)+)"
_FIRST: Final = re.compile(
    rf"^(?:Exception in thread \"[^\"\n]*\" )?{_TYPE}(?:: (?P<message>.*))?$", re.MULTILINE
)
_CAUSE: Final = re.compile(rf"^Caused by: {_TYPE}(?:: (?P<message>.*))?$", re.MULTILINE)
_PYTHON: Final = re.compile(
    r"^(?P<type>[A-Za-z_]\w*(?:\.\w+)*)(?:: (?P<message>.*))?\s*\Z", re.MULTILINE
)
_CONTINUED: Final = re.compile(rb"[ \t]|Caused by: |Suppressed: |at [\w.$]+\(")


class ErrorSummary(NamedTuple):
    """Type and message of an exception, and of its last cause; empty if unknown."""

    error_type: str = ""
    error_message: str = ""
    cause_type: str = ""
    cause_message: str = ""


def summarise(trace: str) -> ErrorSummary:
    """Read the exception that *trace* starts with, or, for Python, ends with."""
    if trace.startswith("Traceback "):
        last = _PYTHON.search(trace)
        return ErrorSummary(last["type"], last["message"] or "") if last else ErrorSummary()
    first = _FIRST.match(trace)
    if first is None:
        return ErrorSummary()
    causes: list[tuple[str, str]] = _CAUSE.findall(trace)
    return ErrorSummary(first["type"], first["message"] or "", *(causes[-1] if causes else ()))


def is_continuation(line: bytes) -> bool:
    """Whether a line continues an event without a header, as frames of a trace do."""
    return _CONTINUED.match(line) is not None
