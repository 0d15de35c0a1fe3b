"""Mutants of Prometheus rules: each differs from its rule in one token.

Mutated are comparisons, thresholds, ranges, set operators, matchers, aggregations and their
labels, functions over time, and the rule's `for` and `keep_firing_for`.
"""

import copy
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from mm2slo_core.catalogue.promql import duration, number

_TOKEN: Final = re.compile(
    r"""
      (?P<text>"(?:\\.|[^"\\])*")
    | (?P<time>(?:\d+(?:ms|[smhdwy]))+)
    | (?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_:]*)
    | (?P<mark>=~|!~|==|!=|>=|<=|[-+*/%^<>=(){}\[\],:])
    | (?P<space>\s+)
    """,
    re.VERBOSE,
)
_COMPARISONS: Final = {
    ">": (">=", "<"),
    ">=": (">", "<"),
    "<": ("<=", ">"),
    "<=": ("<", ">"),
    "==": ("!=",),
    "!=": ("==",),
}
_SETS: Final = {
    "and": ("or", "unless"),
    "or": ("and", "unless"),
    "unless": ("and", "or"),
}
_OPERATORS: Final[Mapping[str, Sequence[str]]] = {**_COMPARISONS, **_SETS}
_ARITHMETIC: Final = {"+": ("-",), "-": ("+",), "*": ("/",), "/": ("*",)}
_AGGREGATIONS: Final = {
    "max": ("min",),
    "min": ("max",),
    "sum": ("max",),
    "avg": ("sum",),
    "count": ("sum",),
}
_FUNCTIONS: Final = {
    "last_over_time": ("max_over_time", "min_over_time"),
    "max_over_time": ("min_over_time",),
    "min_over_time": ("max_over_time",),
    "sum_over_time": ("max_over_time",),
    "avg_over_time": ("max_over_time",),
    "increase": ("delta",),
    "delta": ("increase",),
    "resets": ("changes",),
    "clamp_min": ("clamp_max",),
    "clamp_max": ("clamp_min",),
}
_MATCHES: Final = {"=": "!=", "!=": "=", "=~": "!~", "!~": "=~"}
_LABEL_LISTS: Final = ("by", "without", "on", "ignoring", "group_left", "group_right")
_SMALL: Final = 10
"""Whole numbers up to this one are counts: their mutants are the neighbouring numbers."""
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed rule. `change` shows the changed line and is unique within the rule."""

    rule: str
    change: str
    place: tuple[int, int]
    """Indexes of the group and of the rule in the document."""
    key: str
    value: str

    def applied(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a copy of the rule file *document* with this mutant in it."""
        changed = copy.deepcopy(dict(document))
        group, rule = self.place
        changed["groups"][group]["rules"][rule][self.key] = self.value
        return changed


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


class _Change(NamedTuple):
    """Characters `start` to `end` become `text`."""

    start: int
    end: int
    text: str


def mutants(document: Mapping[str, Any]) -> list[Mutant]:
    """Every mutant of a rule file (as read from YAML), in the file's order."""
    found: list[Mutant] = []
    for group_at, group in enumerate(document["groups"]):
        for rule_at, rule in enumerate(group["rules"]):
            name = rule.get("alert") or rule["record"]
            changes = [
                ("expr", _shown(rule["expr"], each), _result(rule["expr"], each))
                for each in _changes(rule["expr"])
            ]
            for key in ("for", "keep_firing_for"):
                if key in rule:
                    changes += [
                        (key, f"{key}: [{rule[key]} -> {other}]", other)
                        for other in _times(rule[key], 0.5, 1.5)
                    ]
            found += [
                Mutant(name, change, (group_at, rule_at), key, value)
                for key, change, value in changes
            ]
    return _numbered(found)


def seconds(text: str) -> float:
    """Return the length of a duration like `1h30m`."""
    return sum(
        float(count) * _UNITS[unit] for count, unit in re.findall(r"(\d+)(ms|[smhdw])", text)
    )


def _numbered(found: Sequence[Mutant]) -> list[Mutant]:
    """A rule may hold the same line twice: later changes of it get a number."""
    seen: Counter[tuple[str, str]] = Counter()
    result = []
    for each in found:
        seen[each.rule, each.change] += 1
        count = seen[each.rule, each.change]
        change = each.change if count == 1 else f"{each.change} (place {count})"
        result.append(Mutant(each.rule, change, each.place, each.key, each.value))
    return result


def _tokens(expression: str) -> list[_Token]:
    """Raises ValueError at a character that no token starts with."""
    found: list[_Token] = []
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None or match.lastgroup is None:
            raise ValueError(f"cannot read PromQL at {expression[at : at + 20]!r}")
        if match.lastgroup != "space":
            found.append(_Token(match.lastgroup, match.group(), at))
        at = match.end()
    return found


def _changes(expression: str) -> Iterator[_Change]:
    tokens = _tokens(expression)
    inside: list[str] = []
    for at, token in enumerate(tokens):
        before = tokens[at - 1] if at else None
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        if token.text in ("(", "{", "["):
            listed = before is not None and before.text in _LABEL_LISTS
            inside.append("list" if listed else token.text)
        elif token.text in (")", "}", "]"):
            inside.pop()
        elif inside[-1:] == ["{"]:
            yield from _of_matcher(tokens, at)
        elif inside[-1:] == ["list"]:
            if token.kind == "name":
                yield _without(tokens, at)
        else:
            for other in _others(token, before, following):
                yield _replaced(token, other)


def _others(token: _Token, before: _Token | None, following: _Token | None) -> Sequence[str]:
    """Replacements of a duration, a number, a name or an operator."""
    if token.kind == "time":
        step = before is not None and before.text == ":"
        return _times(token.text, *((2.0,) if step else (0.5, 2.0)))
    if token.kind == "number":
        return [number(value) for value in _numbers(float(token.text))]
    if token.text in _ARITHMETIC:
        return _ARITHMETIC[token.text] if _ends_operand(before) else ()
    if token.text in _OPERATORS:
        return _OPERATORS[token.text]
    called = following is not None and following.text in ("(", "by", "without")
    if not called:
        return ()
    return _AGGREGATIONS.get(token.text) or _FUNCTIONS.get(token.text, ())


def _ends_operand(token: _Token | None) -> bool:
    """Whether an operator after *token* is binary, not a sign."""
    return token is not None and (token.kind in ("name", "number") or token.text in (")", "}", "]"))


def _of_matcher(tokens: Sequence[_Token], at: int) -> Iterator[_Change]:
    """`label="value"`: the operator negated, and the matcher removed."""
    token = tokens[at]
    if token.text in _MATCHES:
        yield _replaced(token, _MATCHES[token.text])
    elif token.kind == "name":
        last = tokens[at + 2]
        start, end = token.at, last.at + len(last.text)
        yield _cut(tokens, at, at + 2, start, end)


def _without(tokens: Sequence[_Token], at: int) -> _Change:
    token = tokens[at]
    return _cut(tokens, at, at, token.at, token.at + len(token.text))


def _cut(tokens: Sequence[_Token], first: int, last: int, start: int, end: int) -> _Change:
    """Remove the tokens *first* to *last* and the comma next to them."""
    if tokens[last + 1].text == ",":
        return _Change(start, tokens[last + 2].at, "")
    if tokens[first - 1].text == ",":
        return _Change(tokens[first - 1].at, end, "")
    return _Change(start, end, "")


def _replaced(token: _Token, text: str) -> _Change:
    return _Change(token.at, token.at + len(token.text), text)


def _result(expression: str, change: _Change) -> str:
    return expression[: change.start] + change.text + expression[change.end :]


def _shown(expression: str, change: _Change) -> str:
    """The line of the change, as in `x [> -> >=] 0`."""
    start = expression.rfind("\n", 0, change.start) + 1
    end = expression.find("\n", change.end)
    end = len(expression) if end < 0 else end
    old = expression[change.start : change.end]
    head, tail = expression[start : change.start], expression[change.end : end]
    return f"{head}[{old} -> {change.text}]{tail}".strip()


def _numbers(value: float) -> tuple[float, float]:
    if value.is_integer() and value <= _SMALL:
        return value - 1, value + 1
    return value * 0.9, value * 1.1


def _times(text: str, *factors: float) -> list[str]:
    return [duration(seconds(text) * factor) for factor in factors]
