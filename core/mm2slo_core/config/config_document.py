"""The text of a configuration: YAML with line numbers, references to secrets, and problems.

Stricter than PyYAML's safe loader: duplicate keys are errors, and as in the core schema of YAML
1.2, `off`, `no`, `1:30` and dates are text; of these, `off` and `no` are false in resources of
Kubernetes. Huge and deeply nested text is refused, also if it becomes so by its aliases.
`${env:NAME}` and `${file:/path}` are resolved by `Resolvers`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

import yaml

from mm2slo_core.user_errors import UserError

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
# kubectl reads YAML by sigs.k8s.io/yaml, which has the booleans of YAML 1.1.
_OF_KUBERNETES: Final = _CONSTANTS | {
    each: value
    for value, names in ((True, ("y", "yes", "on")), (False, ("n", "no", "off")))
    for name in names
    for each in (name, name.capitalize(), name.upper())
}
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
    return _parse(text, lambda: [yaml.compose(text, Loader=_LimitedLoader)], _CONSTANTS)[0]


def parse_resources(text: str) -> list[Document]:
    """Parse YAML documents as kubectl does; one with the problem if *text* is not YAML."""
    return _parse(text, lambda: yaml.compose_all(text, Loader=_LimitedLoader), _OF_KUBERNETES)


def _parse(
    text: str, compose: Callable[[], Iterable[yaml.Node | None]], constants: Mapping[str, object]
) -> list[Document]:
    try:
        if len(text) > MAX_CHARACTERS:
            raise _LimitError(MAX_CHARACTERS, "characters")
        budget, documents = _Budget(), []
        for node in list(compose()):
            documents.append(document := Document())
            if node is not None:
                document.value = _Converter(document, budget, constants).convert(node, (), ())
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

    def __init__(
        self, document: Document, budget: _Budget, constants: Mapping[str, object]
    ) -> None:
        self._document = document
        self._budget = budget
        self._constants = constants

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
        return self._scalar(node)

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

    def _scalar(self, node: yaml.Node) -> object:
        text = str(node.value)
        if getattr(node, "style", None) is not None:
            return text
        if text in self._constants:
            return self._constants[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        return float(text) if _FLOAT.fullmatch(text) else text

    def _problem(
        self, node: yaml.Node, path: Path, what: str, expected: str, next_step: str | None = None
    ) -> None:
        self._document.problems.append(
            Problem(render_path(path), what, expected, next_step, node.start_mark.line + 1)
        )


# `$${` is a literal `${`; a kind is followed by a colon, so `a${b}` is plain text.
_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?P<kind>[A-Za-z]+):(?P<name>[^}]*)\}")
_SCHEME: Final = re.compile(r"[A-Za-z][\w.+-]*://")


class UnresolvedError(LookupError):
    """A reference cannot be resolved; the text gives the reason and contains no secret."""


@dataclass(frozen=True, slots=True)
class Resolvers:
    """Lookup functions: each takes a name and returns the value or raises UnresolvedError."""

    env: Callable[[str], str]
    file: Callable[[str], str]


def _unresolved(name: str) -> str:
    raise UnresolvedError(f"cannot be resolved here: no resolver for {name!r}")


NO_RESOLVERS: Final = Resolvers(env=_unresolved, file=_unresolved)


def resolve_references(document: Document, resolvers: Resolvers) -> tuple[object, list[Problem]]:
    """The document with its references replaced, and the problems of failed references.

    Failed references stay as they are, so that the rest of the text can be checked. Values of
    references in the credentials or the query of a URL are percent-encoded.
    """
    problems: list[Problem] = []

    def resolve(text: str, path: Path) -> str:
        scheme = _SCHEME.match(text)
        plain = _REFERENCE.sub(lambda match: "-" * len(match[0]), text)
        at = plain.rfind("@")

        def encode(match: re.Match[str], value: str) -> str:
            if scheme is None or not (match.end() <= at or "?" in plain[: match.start()]):
                return value
            both = (match.start(), match.end()) == (scheme.end(), at)  # `user:password`
            return quote(value, safe=":" if both else "")

        def replace(match: re.Match[str]) -> str:
            if match["kind"] is None:
                return "${"
            try:
                return encode(match, _look_up(match["kind"], match["name"], resolvers))
            except UnresolvedError as error:
                problems.append(_problem(match, str(error), path, document))
                return match[0]

        return _REFERENCE.sub(replace, text)

    def walk(value: object, path: Path) -> object:
        if isinstance(value, str):
            return resolve(value, path)
        if isinstance(value, dict):
            return {key: walk(inner, (*path, key)) for key, inner in value.items()}
        if isinstance(value, list):
            return [walk(inner, (*path, index)) for index, inner in enumerate(value)]
        return value

    return walk(document.value, ()), problems


def _look_up(kind: str, name: str, resolvers: Resolvers) -> str:
    if kind == "env":
        found = resolvers.env(name)
    elif kind == "file":
        # Editors and `kubectl create secret --from-file` append a newline.
        found = resolvers.file(name).removesuffix("\n").removesuffix("\r")
    else:
        raise UnresolvedError("has an unknown reference type")
    if not found:
        raise UnresolvedError("is empty")
    return found


def _problem(match: re.Match[str], reason: str, path: Path, document: Document) -> Problem:
    kind, name, shown = match["kind"], match["name"], match[0]
    if kind == "env":
        next_step = f"export {name}=... before starting"
    elif kind == "file":
        next_step = f"create {name}, readable by this user"
    else:
        # The name may be part of a password that looks like a reference.
        shown, next_step = f"${{{kind}:...}}", "write $${ for a literal ${"
    expected = "${env:NAME} of a set variable, or ${file:/path} of a readable file"
    place, line = render_path(path), document.line_of(path)
    return Problem(place, f"{shown} {reason}", expected, next_step, line)


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


def suggest(name: str, known: Iterable[str]) -> str | None:
    """The most similar of *known*, or None if none is similar."""
    candidates = list(known)
    # Aliases may be too short for difflib: `ue` and `EU` are matched to `eu` by their letters.
    letters = [each for each in candidates if sorted(each.casefold()) == sorted(name.casefold())]
    close = difflib.get_close_matches(
        name, letters or candidates, n=1, cutoff=0.0 if letters else 0.6
    )
    return next(iter(close), None)


def suggest_typo(name: str, known: Iterable[str]) -> str | None:
    """The one of *known* that differs from *name* by what a typo explains.

    That is one character replaced or swapped with the next, or up to two added or removed.
    """
    close = next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)), "")
    blocks = difflib.SequenceMatcher(None, name, close).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return close if close and len(name) + len(close) - 2 * same <= 2 else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str) -> str:
    """The next step for an unknown *name*; *otherwise* if none of *known* is similar."""
    close = suggest(name, known)
    return f"did you mean {close!r}?" if close else otherwise
