"""The problems of a configuration, in one report, and the paths of its values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mm2slo_core.user_errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN: Final = re.compile(r"[\w-]+")
NOT_WRITTEN: Final = object()

# Mapping keys and list positions, from the root of the file.
Path = tuple[str | int, ...]


def value_at(root: Any, path: Path) -> object:
    """The plain YAML value at *path*, or NOT_WRITTEN."""
    for part in path:
        keys = (
            root if isinstance(root, dict) else range(len(root)) if isinstance(root, list) else ()
        )
        if part not in keys:
            return NOT_WRITTEN
        root = root[part]
    return root


def render_path(path: Path) -> str:
    """*path* as `flows[1].canary.interval`; "the file" for the root."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not _PLAIN.fullmatch(part):
            text += f"[{part!r}]"
        else:
            text += f".{part}" if text else part
    return text or "the file"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. *what* quotes the value, unless it is or may contain a secret.

    *file* is a file of MirrorMaker 2; None: the file of the report.
    """

    path: str
    what: str
    expected: str | None = None
    next_step: str | None = None
    line: int | None = None
    column: int | None = None
    file: str | None = None

    def __str__(self) -> str:
        place = self.path
        if self.file is not None:
            at = self.file if self.line is None else f"{self.file}:{self.line}"
            place = f"{at}: {place}" if place else at
        elif self.line is not None:
            place += f" (line {self.line}"
            place += f", column {self.column})" if self.column is not None else ")"
        more = {"expected": self.expected, "next step": self.next_step}
        lines = [f"  {label}: {text}" for label, text in more.items() if text is not None]
        return "\n".join([f"{place}: {self.what}", *lines])


class ConfigError(UserError):
    """The configuration is invalid; *problems* are in file order."""

    def __init__(self, name: str, problems: Iterable[Problem]) -> None:
        self.name = name
        self.problems = tuple(problems)
        count = len(self.problems)
        head = f"{name}: {count} problem{'' if count == 1 else 's'}"
        super().__init__("\n".join([head, *(str(problem) for problem in self.problems)]))
