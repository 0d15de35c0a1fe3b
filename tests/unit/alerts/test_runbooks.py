"""Each alert has a runbook; queries and commands in runbooks are valid."""

import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from typer import Typer
from typer.main import get_command

from mm2slo_cli.main import app
from mm2slo_core import catalogue
from mm2slo_core.catalogue.promql import duration
from mm2slo_core.catalogue.service_metrics import LOGSHIP_GROUPS
from mm2slo_core.indicators.group_readiness import BlockReason
from mm2slo_core.objectives.objective import DEFAULT_WINDOW, WINDOW_PAIRS
from mm2slo_exporter.collection_health import CollectionStage

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "runbooks"
RULES = ROOT / "alerts" / "generated" / "prometheus" / "mm2slo-alerts.rules.yml"
PARTS = ("Meaning", "Impact", "Confirm", "Causes", "Remedies", "Prevent")
SUMMARY = re.compile(
    r"`(?P<severity>page|ticket|none)`(?: · `for: (?P<hold>\w+)`)?"
    r"(?: · `keep_firing_for: (?P<keep>\w+)`)?"
)
OURS = [name for name in sorted(path.stem for path in PAGES.glob("*.md")) if name != "README"]

# From /metrics of Prometheus 2.42 and Alertmanager 0.25.
FOREIGN = {
    "ALERTS",
    "up",
    "alertmanager_alerts_received_total",
    "alertmanager_config_last_reload_successful",
    "alertmanager_notification_latency_seconds_bucket",
    "alertmanager_notifications_failed_total",
    "alertmanager_notifications_total",
    "prometheus_config_last_reload_successful",
    "prometheus_notifications_alertmanagers_discovered",
    "prometheus_notifications_errors_total",
    "prometheus_rule_evaluation_failures_total",
    "prometheus_rule_group_interval_seconds",
    "prometheus_rule_group_iterations_missed_total",
    "prometheus_rule_group_last_duration_seconds",
    "prometheus_target_scrapes_exceeded_sample_limit_total",
    "prometheus_tsdb_head_series",
}
SCRAPED = {"job", "instance"}
FOREIGN_LABELS = {"alertname", "alertstate", "severity", "integration", "rule_group", "le"}

# Options of the tools of Kafka 4.1, from --help.
KAFKA = {
    "kafka-acls.sh": "bootstrap-server list topic cluster principal",
    "kafka-broker-api-versions.sh": "bootstrap-server",
    "kafka-configs.sh": "bootstrap-server describe alter entity-type entity-name add-config",
    "kafka-console-consumer.sh": (
        "bootstrap-server topic from-beginning property timeout-ms formatter"
    ),
    "kafka-consumer-groups.sh": (
        "bootstrap-server describe group topic delete-offsets reset-offsets to-datetime dry-run"
        " execute"
    ),
    "kafka-get-offsets.sh": "bootstrap-server topic time",
    "kafka-topics.sh": (
        "bootstrap-server describe list topic alter partitions exclude-internal "
        "under-min-isr-partitions unavailable-partitions"
    ),
    "kafka-transactions.sh": (
        "bootstrap-server topic partition broker-id start-offset transactional-id"
    ),
}


class Block(NamedTuple):
    page: str
    language: str
    text: str


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


@cache
def alerts() -> Mapping[str, list[dict[str, Any]]]:
    """The rules of each alert."""
    found: dict[str, list[dict[str, Any]]] = {}
    for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            if "alert" in rule:
                found.setdefault(rule["alert"], []).append(rule)
    return found


@cache
def blocks() -> tuple[Block, ...]:
    fence = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return tuple(
        Block(name, language, text)
        for name in (*OURS, "README", "../maintenance")
        for language, text in fence.findall(page(name))
    )


def expressions() -> Iterator[tuple[str, str]]:
    """Page and query, from blocks (separated by empty lines) and inline code."""
    for block in blocks():
        if block.language == "promql":
            yield from ((block.page, each) for each in block.text.strip().split("\n\n"))
    for name in OURS:
        prose = re.sub(r"^```.*?^```$", "", page(name), flags=re.DOTALL | re.MULTILINE)
        for quoted in re.findall(r"`([^`\n]+)`", prose):
            if re.search(
                r"\b(mm2_\w+|flow:\w+:\w+|ALERTS|up)\{|_over_time\(|\b(de)?rate\(", quoted
            ):
                yield name, quoted


def commands() -> Iterator[tuple[str, list[str]]]:
    """Page and arguments of each command, from blocks and inline code; pipes are split."""
    for block in blocks():
        if block.language == "sh":
            for line in block.text.strip().splitlines():
                yield from ((block.page, arguments) for arguments in _split(line))
    for name in OURS:
        prose = re.sub(r"^```.*?^```$", "", page(name), flags=re.DOTALL | re.MULTILINE)
        for quoted in re.findall(r"`((?:mm2slo|kafka-[a-z-]+\.sh) [^`\n]+)`", prose):
            if "..." not in quoted:
                yield from ((name, arguments) for arguments in _split(quoted))


def _split(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    arguments: list[str] = []
    for token in lexer:
        if token == "|":
            yield arguments
            arguments = []
        else:
            arguments.append(token)
    yield arguments


def test_alerts_and_runbooks_match() -> None:
    assert sorted(alerts()) == OURS


@pytest.mark.parametrize("name", OURS)
def test_runbook_has_all_parts(name: str) -> None:
    title, summary, lead, *_ = page(name).split("\n\n")
    assert title == f"# {name}"
    assert re.fullmatch(r"[A-Z0-9][^\n]+\.", lead), "the index shows one sentence"
    rules = alerts()[name]
    if len(rules) == 1:
        shown = SUMMARY.fullmatch(summary)
        assert shown is not None, summary
        [rule] = rules
        assert shown["severity"] == rule["labels"]["severity"]
        assert (shown["hold"], shown["keep"]) == (rule.get("for"), rule.get("keep_firing_for"))
    parts = re.split(r"^## (.+)\n", page(name), flags=re.MULTILINE)[1:]
    assert tuple(parts[::2]) == PARTS
    assert all(len(text.split()) >= 3 for text in parts[1::2])
    causes = parts[2 * PARTS.index("Causes") + 1]
    assert re.search(r"^\|---\|---\|", causes, re.MULTILINE), "causes are a table"


def test_index_lists_each_runbook_by_severity() -> None:
    found: dict[str, str | None] = {}
    for part in re.split(r"^## ", page("README"), flags=re.MULTILINE):
        severity = {"Pages": "page", "Tickets": "ticket", "Watchdog": "none"}.get(part.split()[0])
        listed = re.findall(r"^\| \[(\w+)\]\(\1\.md\)", part, re.MULTILINE)
        found.update(dict.fromkeys(listed, severity))
    assert found == {name: rules[0]["labels"]["severity"] for name, rules in alerts().items()}


@pytest.mark.parametrize("name", [*OURS, "README"])
def test_links_exist(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page(name)):
        assert (PAGES / target).resolve().exists(), target


def test_promtool_accepts_every_query(tmp_path: Path) -> None:
    """A recording rule is valid if its query is."""
    queries = list(expressions())
    assert len(queries) > 150
    rules = [{"record": f"q:{number}", "expr": text} for number, (_, text) in enumerate(queries)]
    path = tmp_path / "queries.rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": rules}]}))
    checked = subprocess.run(
        ["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert f"{len(queries)} rules found" in checked.stdout


@cache
def series() -> Mapping[str, set[str]]:
    """Labels by name of every known series."""
    found: dict[str, set[str]] = {}
    for metric in (*catalogue.ALL, *itertools.chain(*LOGSHIP_GROUPS.values())):
        labels = {*metric.labels, *SCRAPED}
        found[metric.name] = labels
        for name in metric.sample_names:
            found[name] = labels | ({"le"} if name.endswith("_bucket") else set())
    for recorded in catalogue.RECORDED:
        found[recorded.name] = set(recorded.labels)
    everything = {*FOREIGN_LABELS, *SCRAPED, "flow", "source", "target", "cluster"}
    return found | dict.fromkeys(FOREIGN, everything)


_KEYWORDS = {"and", "or", "unless", "bool", "group_left", "group_right"}


def names(query: str) -> Iterator[tuple[str, set[str]]]:
    """Each series of *query* with the labels of its matchers."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)", " ", bare)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    bare = re.sub(r"\boffset +\w+", "", bare)
    # Possessive: the name of a function must not match as a shorter series.
    for name, matchers in re.findall(r"(?<![\w:.])([a-zA-Z_:][\w:]*+)(?!\s*\()(\{[^}]*\})?", bare):
        if name not in _KEYWORDS:
            yield name, set(re.findall(r"(\w+) *(?:=|!)", matchers))


def grouped(query: str) -> set[str]:
    """The labels that *query* groups or joins by."""
    lists = re.findall(r"\b(?:by|on) *\(([^)]*)\)", query)
    return {label.strip() for each in lists for label in each.split(",") if label.strip()}


@pytest.mark.parametrize("name", OURS)
def test_queries_use_known_series_and_labels(name: str) -> None:
    mine = [query for owner, query in expressions() if owner == name]
    assert mine
    for query in mine:
        found = list(names(query))
        assert found, query
        known: set[str] = set()
        for metric, labels in found:
            assert metric in series(), f"{metric} in {query}"
            assert labels <= series()[metric], f"labels of {metric} in {query}"
            known |= series()[metric]
        assert grouped(query) <= known, query


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('up{job="mm2_nothing"}', [("up", {"job"})]),
        ("sum by (topic) (rate(mm2_a[5m])) > 0", [("mm2_a", set())]),
        ('a unless on (flow) b{flow!="x", y=~"z"} offset 1w', [("a", set()), ("b", {"flow", "y"})]),
        ("flow:a:b1h * 3600 > bool 2", [("flow:a:b1h", set())]),
    ],
)
def test_names_parses_series_and_labels(query: str, found: list[tuple[str, set[str]]]) -> None:
    assert list(names(query)) == found


def test_runbooks_list_every_reason_and_stage() -> None:
    blocked = page("MM2FailoverNotReady")
    assert [reason for reason in BlockReason if f"`{reason}`" not in blocked] == []
    failing = page("MM2CollectionFailing")
    assert [stage for stage in CollectionStage if f"`{stage}`" not in failing] == []


def test_burn_windows_match_rules() -> None:
    meaning = page("MM2ErrorBudgetBurn").partition("## Impact")[0]
    rows = re.findall(r"^\| `(\d\w)` \| (.*) \|$", meaning, re.MULTILINE)
    rules = {rule["labels"]["window"]: rule for rule in alerts()["MM2ErrorBudgetBurn"]}
    assert [window for window, _ in rows] == list(rules)
    for (window, row), pair in zip(rows, WINDOW_PAIRS, strict=True):
        short, spends, rate, severity, hold, keep = row.split(" | ")
        factor = f"{pair.factor(DEFAULT_WINDOW):.2f}".rstrip("0").rstrip(".")
        assert short == duration(pair.short)
        assert spends.startswith(f"{pair.share * 100:g} % in")
        assert rate == f"{factor}x the sustainable rate"
        assert severity == f"`{rules[window]['labels']['severity']}`"
        assert (hold, keep) == (rules[window]["for"], rules[window].get("keep_firing_for", "-"))


def _command(arguments: list[str]) -> Any:
    """Return the command of *arguments*, and the remaining arguments.

    Commands are imported lazily: one that takes any argument is looked up in its module.
    """
    found: Any = get_command(app)
    module, rest = "mm2slo_cli.", list(arguments)
    while hasattr(found, "commands") and rest and rest[0] in found.commands:
        name = rest.pop(0)
        found = found.commands[name]
        if found.context_settings.get("allow_extra_args"):
            module += name
            loaded = import_module(module)
            sub = getattr(loaded, f"{name}_app", None)
            if sub is None:
                sub = Typer()
                sub.command()(getattr(loaded, name))
            found = get_command(sub)
            module += "_"
    return found, rest


def test_mm2slo_commands_are_valid() -> None:
    lines = [arguments[1:] for _, arguments in commands() if arguments[:1] == ["mm2slo"]]
    assert len(lines) > 20
    for line in lines:
        command, rest = _command(line)
        options = {
            option for each in command.params for option in (*each.opts, *each.secondary_opts)
        }
        assert {each for each in rest if each.startswith("--")} <= options, line
        print(line)
        command.make_context("mm2slo", rest)  # raises for a missing option or a wrong value


def test_kafka_tools_have_these_options() -> None:
    lines = [
        (owner, arguments)
        for owner, arguments in commands()
        if arguments[:1] and arguments[0] in KAFKA
    ]
    assert len(lines) > 40
    for owner, line in lines:
        known = {f"--{option}" for option in KAFKA[line[0]].split()}
        assert {each for each in line if each.startswith("--")} <= known, (owner, line)


def test_shell_variables_are_defined_in_index() -> None:
    defined = set(re.findall(r"^([A-Z]+)=", page("README"), re.MULTILINE))
    used = {
        variable
        for block in blocks()
        if block.language == "sh"
        for variable in re.findall(r"\$([A-Z]+)", block.text)
    }
    assert used == defined
