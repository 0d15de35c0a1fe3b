"""Objectives from OpenSLO documents: the subset that our counters and pairs can hold."""

from __future__ import annotations

import difflib
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import yaml

from mm2slo_core.errors import UserError
from mm2slo_core.objectives.figures import parse_shorthand
from mm2slo_core.objectives.objective import Severity
from mm2slo_core.objectives.openslo import words
from mm2slo_core.objectives.openslo.structure import Node, Problems
from mm2slo_core.objectives.pairs import BURN_PAIRS
from mm2slo_core.objectives.selectors import GOOD, TOTAL, parse_selector
from mm2slo_core.sli import Sli, SliKey
from mm2slo_core.topology import Flow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mm2slo_core.objectives.pairs import BurnPair

_META: Final = ("name", "displayName", "labels", "annotations")
_PERCENT: Final = 100.0
_OURS: Final = f'{GOOD}{{flow="us->eu",sli="latency",tier="10s"}}, equalities alone'


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """One objective that was read. None and "" stand for what the documents do not say."""

    flow: Flow
    key: SliKey
    target: float
    window: float
    worst: Severity | None = None
    owner: str = ""
    channel: str = ""


def read(text: str, name: str = "the file") -> tuple[Imported, ...]:
    """The objectives that *text* describes, in its order; *name* is the file's, for the report.

    Raises UserError with every field that cannot be expressed. Titles, descriptions and labels
    carry no meaning for us and are passed over.
    """
    problems = Problems()
    documents = _documents(text, name, problems)
    found = [
        imported
        for slo in documents[words.SLO].values()
        if (imported := _objective(slo, documents)) is not None
    ]
    for source in documents[words.SOURCE].values():
        spec = source.node("spec")
        if spec is not None:
            spec.must_be("type", "Prometheus")
    if not problems.found:
        _once(found, problems)
    if not documents[words.SLO] and not problems.found:
        problems.add("documents", "hold no SLO", "at least one document of the kind SLO")
    if problems.found:
        count = len(problems.found)
        head = f"{name}: {count} problem{'' if count == 1 else 's'}"
        raise UserError("\n".join([head, *problems.found]))
    return tuple(found)


def _documents(text: str, name: str, problems: Problems) -> Mapping[str, dict[str, Node]]:
    found: dict[str, dict[str, Node]] = defaultdict(dict)
    try:
        values = list(yaml.load_all(text, Loader=_Strict))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it cannot be read"
        raise UserError(f"{name} is not YAML{where}: {what}; expected OpenSLO documents") from None
    for number, value in enumerate(values, start=1):
        if value is None:
            continue
        if not isinstance(value, dict):
            problems.add(f"document {number}", "is no mapping", "apiVersion, kind, metadata, spec")
            continue
        node = _named(number, value, problems)
        if node is not None:
            kind = str(value["kind"])
            if node.value["metadata"]["name"] in found[kind]:
                problems.add(node.place + "metadata.name", "stands twice", "each name once a kind")
            found[kind][node.value["metadata"]["name"]] = node
    return found


class _Strict(yaml.SafeLoader):
    """A key that is written twice is an error: which of the two was meant, nobody can tell."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [str(key.value) for key, _ in node.value]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {twice!r} stands twice", node.start_mark
            )
        return super().construct_mapping(node, deep=deep)


def _named(number: int, value: dict[str, Any], problems: Problems) -> Node | None:
    node = Node(f"document {number}: ", value, problems)
    node.must_be("apiVersion", words.API_VERSION)
    node.only(("apiVersion", "kind", "metadata", "spec"))
    kind = node.text("kind")
    if kind is not None and kind not in words.KINDS:
        node.refuse("kind", f"one of {', '.join(words.KINDS)}")
        return None
    metadata = node.node("metadata")
    name = None if metadata is None else metadata.text("name")
    if metadata is None or kind is None or name is None:
        return None
    node.place = f"{kind} {name}: "
    metadata.place = f"{kind} {name}: metadata"
    metadata.only(_META)
    return node


def _objective(slo: Node, documents: Mapping[str, dict[str, Node]]) -> Imported | None:
    spec = slo.node("spec")
    if spec is None:
        return None
    spec.only(
        (
            "description", "service", "indicator", "indicatorRef", "timeWindow",
            "budgetingMethod", "objectives", "alertPolicies",
        )
    )  # fmt: skip
    spec.must_be("budgetingMethod", "Occurrences")
    window, target = _window(spec), _target(spec)
    indicator = _indicator(spec, documents)
    worst = None if window is None else _severity(spec, window, documents)
    if window is None or target is None or indicator is None:
        return None
    found = Imported(flow=indicator[0], key=indicator[1], target=target, window=window, worst=worst)
    return _annotated(slo, found)


def _window(spec: Node) -> float | None:
    entry = spec.one("timeWindow")
    if entry is None:
        return None
    entry.only(("duration", "isRolling"), "is a calendar window, and burn rates always roll")
    entry.must_be("isRolling", wanted=True)
    seconds = parse_shorthand(entry.value.get("duration"))
    if seconds is None:
        entry.refuse("duration", "minutes, hours, days or weeks, as in 28d")
    return seconds


def _target(spec: Node) -> float | None:
    entry = spec.one("objectives")
    if entry is None:
        return None
    entry.only(("displayName", "target", "targetPercent"))
    given = [key for key in ("target", "targetPercent") if key in entry.value]
    if len(given) != 1:
        entry.problems.add(entry.place, "needs one of target and targetPercent", "exactly one")
        return None
    value, whole = entry.value[given[0]], 1.0 if given[0] == "target" else _PERCENT
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < whole:
        entry.refuse(given[0], f"a number between 0 and {whole:g}")
        return None
    return float(f"{value / whole:.15g}")


def _indicator(spec: Node, documents: Mapping[str, dict[str, Node]]) -> tuple[Flow, SliKey] | None:
    inline = spec.node("indicator") if "indicator" in spec.value else None
    if inline is not None:
        inline.only(("metadata", "spec"))
        body = inline.node("spec")
    else:
        name = spec.text("indicatorRef")
        document = documents[words.SLI].get(name or "")
        if name is not None and document is None:
            spec.refuse("indicatorRef", "the name of an SLI in the same file")
        body = None if document is None else document.node("spec")
    if body is None:
        return None
    body.only(("description", "ratioMetric"))
    ratio = body.node("ratioMetric")
    if ratio is None:
        return None
    ratio.only(("counter", "good", "total"))
    ratio.must_be("counter", wanted=True)
    good, total = _counter(ratio, "good", GOOD), _counter(ratio, "total", TOTAL)
    if good is not None and total is not None and good != total:
        ratio.problems.add(ratio.place, "good and total are of different series", "equal labels")
        return None
    return good


def _counter(ratio: Node, key: str, name: str) -> tuple[Flow, SliKey] | None:
    outer = ratio.node(key)
    source = None if outer is None else outer.node("metricSource")
    if outer is None or source is None:
        return None
    outer.only(("metricSource",))
    source.only(("metricSourceRef", "type", "spec"))
    if "type" in source.value:
        source.must_be("type", "Prometheus")
    spec = source.node("spec")
    query = None if spec is None else spec.text("query")
    if spec is None or query is None:
        return None
    spec.only(("query",))
    parsed = parse_selector(query)
    if parsed is None or parsed[0] != name or set(parsed[1]) != {"flow", "sli", "tier"}:
        spec.refuse("query", _OURS.replace(GOOD, name))
        return None
    return _series(spec, parsed[1])


def _series(spec: Node, labels: Mapping[str, str]) -> tuple[Flow, SliKey] | None:
    try:
        flow = Flow.parse(labels["flow"])
    except ValueError:
        spec.problems.add(f"{spec.place}.query", f"names {labels['flow']!r}", "a flow as us->eu")
        return None
    if labels["sli"] not in set(Sli):
        close = difflib.get_close_matches(labels["sli"], list(Sli), n=1)
        hint = f"; did you mean {str(close[0])!r}?" if close else ""
        spec.problems.add(
            f"{spec.place}.query", f"names the indicator {labels['sli']!r}",
            f"one of {', '.join(Sli)}{hint}",
        )  # fmt: skip
        return None
    return flow, SliKey(Sli(labels["sli"]), labels["tier"])


def _severity(
    spec: Node, window: float, documents: Mapping[str, dict[str, Node]]
) -> Severity | None:
    """The gravest severity of the policies; None without any."""
    names = spec.value.get("alertPolicies", [])
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        spec.refuse("alertPolicies", "names of policies in the same file")
        return None
    found = set()
    for name in names:
        policy = documents[words.POLICY].get(name)
        if policy is None:
            spec.problems.add(
                f"{spec.place}.alertPolicies", f"names {name!r}", "a policy of the same file"
            )
            continue
        pair = _pair(policy, window, documents)
        if pair is not None:
            found.add(pair.severity)
    if not found:
        return None
    return Severity.PAGE if Severity.PAGE in found else Severity.TICKET


def _pair(policy: Node, window: float, documents: Mapping[str, dict[str, Node]]) -> BurnPair | None:
    """The pair whose long window, burn rate and hold the policy's condition has."""
    spec = policy.node("spec")
    entry = None if spec is None else spec.one("conditions")
    if spec is None or entry is None:
        return None
    spec.only(
        (
            "description", "alertWhenNoData", "alertWhenBreaching", "alertWhenResolved",
            "conditions", "notificationTargets",
        )
    )  # fmt: skip
    if spec.value.get("alertWhenNoData"):
        spec.must_be("alertWhenNoData", wanted=False)
    name = entry.text("conditionRef")
    document = documents[words.CONDITION].get(name or "")
    if name is not None and document is None:
        entry.refuse("conditionRef", "the name of an AlertCondition in the same file")
    body = None if document is None else document.node("spec")
    condition = None if body is None else body.node("condition")
    if body is None or condition is None:
        return None
    body.only(("description", "severity", "condition"))
    condition.only(("kind", "op", "threshold", "lookbackWindow", "alertAfter"))
    condition.must_be("kind", "burnrate")
    condition.must_be("op", "gt")
    return _matching_pair(body, condition, window)


def _matching_pair(body: Node, condition: Node, window: float) -> BurnPair | None:
    lookback = parse_shorthand(condition.value.get("lookbackWindow"))
    pair = next((each for each in BURN_PAIRS if each.long == lookback), None)
    if pair is None:
        condition.refuse("lookbackWindow", "the long window of a pair: 1h, 6h, 1d or 3d")
        return None
    condition.must_be("threshold", words.threshold(pair, window))
    if parse_shorthand(condition.value.get("alertAfter")) != pair.hold:
        condition.refuse("alertAfter", f"{pair.hold / 60:g}m, as the pair {pair.name} has it")
    body.must_be("severity", pair.severity.value)
    return pair


def _annotated(slo: Node, found: Imported) -> Imported:
    metadata = slo.node("metadata")
    notes = None if metadata is None else metadata.value.get("annotations")
    if metadata is None or not isinstance(notes, dict):
        return found
    worst = notes.get(words.WORST)
    if worst is not None and worst not in set(Severity):
        metadata.problems.add(
            f"{metadata.place}.annotations", f"{words.WORST} is {worst!r}", "page or ticket"
        )
        worst = None
    return replace(
        found,
        worst=found.worst if worst is None else Severity(worst),
        owner=str(notes.get(words.OWNER, "")),
        channel=str(notes.get(words.CHANNEL, "")),
    )


def _once(found: list[Imported], problems: Problems) -> None:
    seen = set()
    for each in found:
        if (each.flow, each.key) in seen:
            problems.add(
                "documents",
                f"promise {each.flow.label} {each.key.sli} {each.key.tier} twice",
                "one SLO for each flow and indicator",
            )
        seen.add((each.flow, each.key))
