"""Checks of a search: brackets, commands, macros, lookups, actions and fields."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

COMMANDS = re.compile(
    "bin|convert|dedup|eval|inputlookup|lookup|regex|rename|rex|search|sort|stats|streamstats|table"
    "|timechart|tstats|where"
)
_EXPRESSIONS = re.compile("dedup|eval|sort|stats|streamstats|table|timechart|where")
_KEYWORDS = re.compile(
    "as|by|span|limit|current|count|true|false|AND|OR|NOT|IN|useother|window|keepempty|f|t"
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MACRO = re.compile(r"`(\w+)(?:\((.*?)\))?`")
_DEFINED = re.compile(r"\bas (\w+)|\beval (\w+)\s*=|\(\?P?<(\w+)>")
_NAME = re.compile(r"(?<![\w.$`])([A-Za-z_][\w.]*)(?![\w.]*\()")
_ACTION = re.compile(r"event_action\s*(?:=|IN)\s*(?:\(([^)]*)\)|(\w+))")
_LOOKUP = re.compile(r"\b(?:input)?lookup (?:append=t )?(\w+(?:\.csv)?)(.*)")
_PAIRS = {")": "(", "]": "["}


@dataclass(frozen=True)
class AppContents:
    """What searches may refer to: macros with their number of arguments, lookups with columns."""

    macros: dict[str, int]
    lookups: dict[str, frozenset[str]]
    actions: frozenset[str]
    fields: frozenset[str]


def lint_search(search: str, app: AppContents) -> Iterator[str]:
    """Return the problems of a search."""
    plain = _STRING.sub('""', search)
    if plain.count('"') % 2 or plain.replace('""', "").count('"'):
        yield "unbalanced quotes"
    yield from _lint_brackets(plain)
    yield from _lint_macros(search, app)
    yield from _lint_actions(plain, app)
    known = set(app.fields)
    for number, part in enumerate(plain.split("|")):
        command = part.split(maxsplit=1)[0] if part.split() else ""
        if number and command.startswith("`"):
            continue
        if number and not COMMANDS.fullmatch(command):
            yield f"unknown command {command!r}" if command else "empty command"
        known |= {name for names in _DEFINED.findall(part) for name in names if name}
        if command in {"lookup", "inputlookup"}:
            yield from _lint_lookup(part, app)
        if _EXPRESSIONS.fullmatch(command):
            for name in _NAME.findall(part.replace(command, "", 1)):
                if name not in known and not _KEYWORDS.fullmatch(name):
                    yield f"unknown field {name!r}"


def _lint_brackets(plain: str) -> Iterator[str]:
    opened: list[str] = []
    for each in plain.replace('""', ""):
        if each in _PAIRS.values():
            opened.append(each)
        elif each in _PAIRS and (not opened or opened.pop() != _PAIRS[each]):
            yield f"unbalanced {each!r}"
    if opened:
        yield f"unbalanced {opened[-1]!r}"


def _lint_macros(search: str, app: AppContents) -> Iterator[str]:
    for name, arguments in _MACRO.findall(search):
        count = len(arguments.split(",")) if arguments else 0
        if app.macros.get(name) != count:
            yield f"unknown macro {name}({count})"


def _lint_actions(plain: str, app: AppContents) -> Iterator[str]:
    for listed, single in _ACTION.findall(plain):
        for action in re.findall(r"\w+", listed or single):
            if action not in app.actions:
                yield f"unknown event action {action!r}"


def _lint_lookup(part: str, app: AppContents) -> Iterator[str]:
    for name, columns in _LOOKUP.findall(part):
        if name not in app.lookups:
            yield f"unknown lookup {name!r}"
            continue
        used = re.sub(r"\bas \w+|\bOUTPUT(?:NEW)?\b", "", columns, flags=re.IGNORECASE)
        for column in re.findall(r"\w+", used):
            if column not in app.lookups[name]:
                yield f"lookup {name} has no column {column!r}"
