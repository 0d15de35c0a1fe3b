"""Parses YAML to plain values with line numbers.

Stricter than PyYAML's safe loader: duplicate keys are errors, and as in the core schema of YAML
1.2, `off`, `no`, `1:30` and dates are text. Huge and deeply nested text is refused, also if it
becomes so by its aliases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import yaml

from mm2slo_core.config.config_problems import Path, Problem, render_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_CHARACTERS: Final = 2_000_000
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 64
_MERGE: Final = "<<"
_INTEGER: Final = re.compile(r"[-+]?[0-9]+", re.ASCII)
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_CONSTANTS: Final = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_KNOWN_TAG: Final = "tag:yaml.org,2002:"
_QUOTED: Final = re.compile(r"'([^']*)'")
_TOKEN: Final = re.compile(r"[^\w\s]|<[a-z ]+>")


@dataclass(slots=True)
class Document:
    """A parsed file: its value, the line of each path, and its problems."""

    value: object = None
    lines: dict[Path, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def line_of(self, path: Path) -> int | None:
        """The line of *path*, or of the nearest mapping around it; None for the root."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None


def parse_document(text: str) -> Document:
    """Parse *text*. A syntax error or an exceeded limit is the only problem of a document."""
    return _parse(text, lambda: [yaml.compose(text, Loader=_LimitedLoader)])[0]


def parse_documents(text: str) -> list[Document]:
    """Parse *text* with any number of YAML documents; one with the problem if it is not YAML."""
    return _parse(text, lambda: yaml.compose_all(text, Loader=_LimitedLoader))


def _parse(text: str, compose: Callable[[], Iterable[yaml.Node | None]]) -> list[Document]:
    try:
        if len(text) > MAX_CHARACTERS:
            raise _LimitError(MAX_CHARACTERS, "characters")
        budget, documents = _Budget(), []
        for node in list(compose()):
            documents.append(document := Document())
            if node is not None:
                document.value = _Converter(document, budget).convert(node, (), ())
        return documents
    except _LimitError as error:
        problem = error.problem
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = _syntax_problem(error.problem or "cannot be read", mark)
    except yaml.YAMLError:
        problem = _syntax_problem("contains a character that YAML forbids", None)
    return [Document(problems=[problem])]


class _LimitError(Exception):
    def __init__(self, limit: int, unit: str, line: int | None = None) -> None:
        self.problem = Problem(
            render_path(()),
            f"has more than {limit} {unit}",
            f"at most {limit} {unit}",
            "split the file, or remove aliases that repeat large parts of it",
            line,
        )


class _Budget:
    """Counts the nodes of all documents of a text."""

    nodes = 0

    def spend(self, depth: int, mark: yaml.Mark) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise _LimitError(MAX_NODES, "keys and values, counting aliases", mark.line + 1)
        if depth > MAX_DEPTH:
            raise _LimitError(MAX_DEPTH, "levels of nesting", mark.line + 1)


class _LimitedLoader(yaml.SafeLoader):
    """Stops at the limits, before the nodes of a huge text are in memory."""

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._budget = _Budget()
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        self._budget.spend(self._depth, self.get_mark())
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _syntax_problem(what: str, mark: yaml.Mark | None) -> Problem:
    return Problem(
        render_path(()),
        "is not YAML: " + _QUOTED.sub(_mask, what),
        expected="a YAML mapping with clusters and flows",
        next_step="fix the syntax; quote text that contains : # * & % or starts with a brace",
        line=mark.line + 1 if mark else None,
        column=mark.column + 1 if mark else None,
    )


def _mask(quoted: re.Match[str]) -> str:
    # PyYAML quotes tokens such as ',' or '<block end>', and text of the user, which may be the
    # start of a password.
    return quoted[0] if _TOKEN.fullmatch(quoted[1]) else "a value"


class _Converter:
    """Converts the nodes of one document and collects lines and problems."""

    def __init__(self, document: Document, budget: _Budget) -> None:
        self._document = document
        self._budget = budget

    def convert(self, node: yaml.Node, path: Path, ancestors: tuple[yaml.Node, ...]) -> object:
        if path:
            self._document.lines.setdefault(path, node.start_mark.line + 1)
        if any(node is outer for outer in ancestors):
            self._problem(node, path, "contains itself through an alias", "a value without cycles")
            return None
        ancestors = (*ancestors, node)
        self._budget.spend(len(ancestors), node.start_mark)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, ancestors)
        if isinstance(node, yaml.SequenceNode):
            items = enumerate(node.value)
            return [self.convert(item, (*path, index), ancestors) for index, item in items]
        if not node.tag.startswith(_KNOWN_TAG):
            self._problem(node, path, "has a YAML tag", "a plain value without !tag")
            return None
        return _scalar(node)

    def _mapping(
        self, node: yaml.MappingNode, path: Path, ancestors: tuple[yaml.Node, ...]
    ) -> dict[str, object]:
        merged: dict[str, object] = {}
        own: dict[str, object] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                self._problem(key, path, "has a key that is not text", "text keys")
                continue
            name = str(key.value)
            if name == _MERGE and key.style is None:
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    found = self.convert(source, path, ancestors)
                    merged = (found if isinstance(found, dict) else {}) | merged
                continue
            here = (*path, name)
            if name in own:
                what, expected = "is a duplicate key", "each key once"
                self._problem(key, here, what, expected, "remove one of them")
                continue
            self._document.lines[here] = key.start_mark.line + 1
            own[name] = self.convert(value, here, ancestors)
        return merged | own

    def _problem(
        self, node: yaml.Node, path: Path, what: str, expected: str, next_step: str | None = None
    ) -> None:
        self._document.problems.append(
            Problem(render_path(path), what, expected, next_step, node.start_mark.line + 1)
        )


def _scalar(node: yaml.Node) -> object:
    text = str(node.value)
    if getattr(node, "style", None) is not None:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
