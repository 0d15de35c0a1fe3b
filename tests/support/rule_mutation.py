"""Mutation testing of the generated rules: changes one token, expects a test to fail."""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple

from mm2slo_alerts.promtool_tests import RuleTest
from mm2slo_cli.alerts_test import RuleFiles, failure
from mm2slo_core.catalogue.promql import duration, number
from mm2slo_core.quantity_text import parse_duration


@dataclass(frozen=True, slots=True)
class Verdict:
    """`killed`: a test failed on the mutant; `reason`: why it is listed as equivalent."""

    mutant: Mutant
    killed: bool
    reason: str = ""

    @property
    def is_expected(self) -> bool:
        return self.killed != bool(self.reason)


def all_mutants(rules: RuleFiles) -> list[Mutant]:
    """Mutants of the alerts, then of the recorded series."""
    return [*mutants(rules.alerts), *mutants(rules.recording)]


def sample_mutants(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Return *count* of the mutants, the same for the same seed, in their order."""
    chosen = sorted(Random(seed).sample(range(len(found)), min(count, len(found))))
    return [found[at] for at in chosen]


@dataclass(frozen=True, slots=True)
class _Case(RuleTest):
    """One case of a test, with the rules that the whole test needs."""

    case: Mapping[str, Any]

    def reduced(self) -> dict[str, Any]:
        return {**RuleTest.reduced(self), "tests": [self.case]}


def judge_mutants(
    found: Iterable[Mutant], rules: RuleFiles, tests: Sequence[RuleTest], *, workers: int
) -> list[Verdict]:
    """Run the tests of each mutant's rule. A mutant of a recorded series takes seconds."""
    recorded = {rule["record"] for group in rules.recording["groups"] for rule in group["rules"]}

    def judge(mutant: Mutant) -> Verdict:
        mutated: tuple[Mapping[str, Any], ...]
        if mutant.rule in recorded:
            mutated = (mutant.applied(rules.recording), rules.alerts)
        else:
            mutated = (rules.recording, mutant.applied(rules.alerts))
        readers = _readers(mutant.rule, rules.alerts)
        chosen = [test for test in tests if test.alerts & readers or _queries(test, mutant.rule)]
        killed = any(failure([case], mutated) for case in _cases(chosen, mutant.rule))
        return Verdict(mutant, killed, equivalence_reason(mutant))

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(judge, found))


def _readers(rule: str, document: Mapping[str, Any]) -> set[str]:
    """Return the names of *rule* and of the rules that read it, also through another one."""
    every = [each for group in document["groups"] for each in group["rules"]]
    found, added = set[str](), {rule}
    while added:
        found |= added
        readers = (each for each in every if any(name in each["expr"] for name in added))
        added = {each.get("alert") or each["record"] for each in readers} - found
    return found


def _cases(tests: Iterable[RuleTest], rule: str) -> list[_Case]:
    """The cases of *tests*, first those that query *rule*, then the shortest: they fail first."""
    found = [
        _Case(test.name, test.document, case) for test in tests for case in test.document["tests"]
    ]
    return sorted(found, key=lambda each: (not _case_queries(each.case, rule), _length(each.case)))


def _length(case: Mapping[str, Any]) -> float:
    """Seconds that promtool evaluates the rules for."""
    checks = [*case.get("alert_rule_test", ()), *case.get("promql_expr_test", ())]
    return max(seconds(check["eval_time"]) for check in checks)


def _queries(test: RuleTest, rule: str) -> bool:
    return any(_case_queries(each, rule) for each in test.document["tests"])


def _case_queries(case: Mapping[str, Any], rule: str) -> bool:
    return any(rule in check["expr"] for check in case.get("promql_expr_test", ()))


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Patterns that match the whole rule name and the whole change."""

    rule: str
    change: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        return bool(
            re.fullmatch(self.rule, mutant.rule) and re.fullmatch(self.change, mutant.change)
        )


EQUIVALENT: Final[tuple[Equivalent, ...]] = (
    Equivalent(
        "MM2ErrorBudget(Burn.*|Exhausted)|MM2SLOCoverageLow",
        r"\[\* -> /\] on .* group_left \(owner, channel\) .* \^ 0",
        "The factor that adds owner and channel is 1: the objective to the power of 0.",
    ),
    Equivalent(
        "flow:mm2_slo_objective:ratio",
        r"0 \* (\[max -> min\] by .*|max by .*\[last_over_time -> (max|min)_over_time\].*)",
        "The value is multiplied by 0: only its presence counts.",
    ),
    Equivalent(
        "flow:mm2_slo_window:seconds",
        r"0 (\[\* -> /\] max by .*|\* \[max -> min\] by .*)",
        "0 times a target, or 0 divided by it, is 0: only its presence counts.",
    ),
    Equivalent(
        "flow:mm2_slo_due:step5m",
        r"0 (\[\* -> /\] \(max by .*|\* \(.*\[max -> min\] by .*)",
        "0 times a target, or 0 divided by it, is 0: only its presence counts.",
    ),
    Equivalent(
        "flow:mm2_slo_burn:ratio(1h|6h|1d|3d|_window)",
        r".*or 0 \[\* -> /\] flow:mm2_sli_measured:count.*",
        "0 divided by a count is 0 as well.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio1h",
        r"/ .* or 0 (\[\* -> /\] sum_over_time|\* \[sum_over_time -> max_over_time\]).*",
        "0 times a sum is 0; where the sum is 0 as well, neither 0 nor 0/0 is above 0.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio1h",
        r"/ .* or 0 \* sum_over_time\(.*\[\[57m30s -> 1h55m\]\]\)\) > 0\)",
        "Samples that only the longer range finds have no one-hour sum to be added to.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio1h",
        r"0 \[\* -> /\] \(count_over_time.*",
        "0 divided by a count is 0 as well.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio_window",
        r"/ .* or 0 \[\* -> /\] flow:mm2_sli_events:sum_window\) > 0\)",
        "Where the sum is 0, neither 0 nor 0/0 is above 0.",
    ),
    Equivalent(
        "flow:mm2_slo_coverage:ratio_window",
        r"and on \(.*\[.*-> \].*\) flow:mm2_slo_window:seconds == .*",
        "It divides sums over the window, which exist only for objectives with that window.",
    ),
    Equivalent(
        "MM2SLOCoverageLow",
        r"unless .* or (\[0 -> -1\] \*|0 \* (\[last_over_time|.*\[12m30s -> 25m\])).*",
        "0 times a count is 0, none is below 0, and without the left side nothing is compared.",
    ),
    Equivalent(
        "MM2Watchdog",
        r"vector\(\[1 -> [02]\]\)",
        "It fires with any value, and its annotations show no value.",
    ),
    Equivalent(
        "MM2ClusterUnreachable|cluster:mm2_cluster_unreachable:.*",
        r".*max_over_time\(mm2_exporter_last_success.*\[\[(1m -> 2m|2m -> 4m)\]\].*",
        "An answer that only a longer range finds is too old for the comparison beside it.",
    ),
    Equivalent(
        "flow:mm2_flow_seen:timestamp_seconds",
        r"\(\[last_over_time -> max_over_time\].*",
        "Times of samples only rise, so the last one is the highest.",
    ),
    Equivalent(
        "flow:mm2_flow_stopped:.*|cluster:mm2_cluster_unreachable:.*",
        r"\(\[last_over_time -> (min|max)_over_time\]\(\w+:\w+:since_timestamp_seconds\[.*",
        "It is constant within an incident, and the range is too short to hold another one.",
    ),
    Equivalent(
        "flow:mm2_flow_stopped:since_timestamp_seconds",
        r"\(max by .*mm2_flow_state\{\[state=\"stopped\" -> \]\}.*",
        "A product matches series by all labels, so that one matcher decides for both sides.",
    ),
    Equivalent(
        "MM2ClusterUnreachable",
        r".*last_success_timestamp_seconds\{\[stage=.* -> \]\}.*",
        "A difference matches series by all labels, so that one matcher decides for both sides.",
    ),
    Equivalent(
        "MM2ClusterUnreachable",
        r"sum_over_time.* (\[or -> and\]|or group by \(\[cluster -> \]\)) .*",
        "Zeros add nothing to a sum: it may be absent, or have one more series of zeros.",
    ),
    Equivalent(
        "MM2ClusterUnreachable",
        r"changes.*_total\) (\[\* -> /\] 0|\* \[0 -> -1\]).*",
        "Changes to and from another value than 0 are as many.",
    ),
    Equivalent(
        "MM2ErrorBudgetBurn",
        r"\[\* -> /\] on .* topk by .* \^ 0.*",
        "The other side is 1, and only has labels to add: 1 multiplies and divides alike.",
    ),
    Equivalent(
        "MM2RecordsLost",
        r"max by .* \(\[last_over_time -> min_over_time\]\(.*\)\) \(place 2\)",
        "Where the counter rose within the range, the branch above fires first.",
    ),
    Equivalent(
        "MM2RecordsLost",
        r"0 (\[\* -> /\] .*|\* (\[max -> min\]|max by .*\((\[min_over_time|.*\[\[5m)).*)",
        "0 times the pending records, or 0 divided by them, is 0: only its presence counts.",
    ),
)


def equivalence_reason(mutant: Mutant) -> str:
    """Return why no test can notice *mutant*; empty when a test must."""
    return next((each.reason for each in EQUIVALENT if each.covers(mutant)), "")


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
    return sum(map(parse_duration, re.findall(r"\d+[a-z]+", text)))


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
