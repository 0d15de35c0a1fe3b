"""Each alert has a page and each page an alert; what the pages tell people to type can be typed."""

from __future__ import annotations

import re
import shlex
import subprocess
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from typer import Typer
from typer.main import get_command

from mm2slo_alerts.aftermath import MEMORIES
from mm2slo_cli.main import app
from mm2slo_core import catalogue
from mm2slo_core.group_readiness import BlockReason
from mm2slo_core.objectives import BURN_PAIRS, DEFAULT_WINDOW
from mm2slo_core.promql import duration
from mm2slo_exporter.collection_health import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "runbooks"
RULES = ROOT / "alerts" / "generated" / "prometheus" / "mm2slo-alerts.rules.yml"
PARTS = ("Meaning", "Impact", "Confirm", "Causes", "Remedies", "Prevent")
SUMMARY = re.compile(
    r"`(?P<severity>page|ticket|none)`(?: · `for: (?P<hold>\w+)`)?"
    r"(?: · `keep_firing_for: (?P<keep>\w+)`)?"
)
OURS = [name for name in sorted(path.stem for path in PAGES.glob("*.md")) if name != "README"]

# Of the programs themselves, by their /metrics (Prometheus 2.42, Alertmanager 0.25).
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

# Options that the tools of Kafka 4.1 know; each was looked up with --help.
KAFKA = {
    "kafka-acls.sh": "bootstrap-server list topic cluster principal",
    "kafka-broker-api-versions.sh": "bootstrap-server",
    "kafka-configs.sh": "bootstrap-server describe alter entity-type entity-name add-config",
    "kafka-console-consumer.sh": (
        "bootstrap-server topic from-start property timeout-ms formatter"
    ),
    "kafka-consumer-groups.sh": (
        "bootstrap-server describe group topic reset-offsets to-datetime dry-run execute"
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
    """A fenced block of a page."""

    page: str
    language: str
    text: str


def page(name: str) -> str:
    return (PAGES / f"{name}.md").read_text(encoding="utf-8")


@cache
def alerts() -> Mapping[str, dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


@cache
def blocks() -> tuple[Block, ...]:
    fence = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return tuple(
        Block(name, language, text)
        for name in (*OURS, "README", "../maintenance")
        for language, text in fence.findall(page(name))
    )


def expressions() -> Iterator[tuple[str, str]]:
    """Page and query: those of blocks, divided by empty lines, and those within the text."""
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
    """Page and words of each command line, pipes divided; those within the text as well."""
    for block in blocks():
        if block.language == "sh":
            for line in block.text.strip().splitlines():
                yield from ((block.page, words) for words in _words(line))
    for name in OURS:
        prose = re.sub(r"^```.*?^```$", "", page(name), flags=re.DOTALL | re.MULTILINE)
        for quoted in re.findall(r"`((?:mm2slo|kafka-[a-z-]+\.sh) [^`\n]+)`", prose):
            if "..." not in quoted:
                yield from ((name, words) for words in _words(quoted))


def _words(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = "#"
    words: list[str] = []
    for word in lexer:
        if word == "|":
            yield words
            words = []
        else:
            words.append(word)
    yield words


def test_each_alert_has_a_page_and_each_page_an_alert() -> None:
    assert sorted(alerts()) == OURS


@pytest.mark.parametrize("name", OURS)
def test_a_page_has_all_parts_with_something_in_them(name: str) -> None:
    title, summary, *_ = page(name).split("\n\n")
    assert title == f"# {name}"
    told = SUMMARY.fullmatch(summary)
    assert told is not None, summary
    rule = alerts()[name]
    assert told["severity"] == rule["labels"]["severity"]
    assert (told["hold"], told["keep"]) == (rule.get("for"), rule.get("keep_firing_for"))
    parts = re.split(r"^## (.+)\n", page(name), flags=re.MULTILINE)[1:]
    assert tuple(parts[::2]) == PARTS
    assert all(len(text.split()) >= 3 for text in parts[1::2])
    causes = parts[2 * PARTS.index("Causes") + 1]
    assert re.search(r"^\|---\|---\|", causes, re.MULTILINE), "causes are a table"


def test_the_index_names_each_page_below_its_severity() -> None:
    found: dict[str, str | None] = {}
    for part in re.split(r"^## ", page("README"), flags=re.MULTILINE):
        severity = {"Pages:": "page", "Tickets:": "ticket", "For": "none"}.get(part.split()[0])
        listed = re.findall(r"^\| \[(\w+)\]\(\1\.md\)", part, re.MULTILINE)
        found.update(dict.fromkeys(listed, severity))
    assert found == {name: rule["labels"]["severity"] for name, rule in alerts().items()}


@pytest.mark.parametrize("name", [*OURS, "README"])
def test_links_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page(name)):
        assert (PAGES / target).resolve().exists(), target


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    """Duplicates and colons aside, a rule that records a query is valid when the query is."""
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
    """Name -> labels of everything that a query may name."""
    found: dict[str, set[str]] = {}
    for metric in catalogue.ALL:
        labels = {*metric.labels, *SCRAPED}
        found[metric.name] = labels
        for name in metric.sample_names:
            found[name] = labels | ({"le"} if name.endswith("_bucket") else set())
    for recorded in catalogue.RECORDED:
        found[recorded.name] = set(recorded.labels)
    everything = {*FOREIGN_LABELS, *SCRAPED, "flow", "source", "target", "cluster"}
    return found | dict.fromkeys(FOREIGN, everything)


_WORDS = {"and", "or", "unless", "bool", "group_left", "group_right"}


def names(query: str) -> Iterator[tuple[str, set[str]]]:
    """Each series of *query* with the labels that its matchers name."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', query)
    bare = re.sub(r"\b(by|without|on|ignoring|group_left|group_right) *\([^)]*\)", " ", bare)
    bare = re.sub(r"\[[^\]]*\]", "", bare)
    bare = re.sub(r"\boffset +\w+", "", bare)
    # Possessive, so that a function's name is not taken for that of a shorter series.
    for name, matchers in re.findall(r"(?<![\w:.])([a-zA-Z_:][\w:]*+)(?!\s*\()(\{[^}]*\})?", bare):
        if name not in _WORDS:
            yield name, set(re.findall(r"(\w+) *(?:=|!)", matchers))


def grouped(query: str) -> set[str]:
    """The labels that *query* groups or joins by."""
    lists = re.findall(r"\b(?:by|on) *\(([^)]*)\)", query)
    return {label.strip() for each in lists for label in each.split(",") if label.strip()}


@pytest.mark.parametrize("name", OURS)
def test_queries_name_what_there_is(name: str) -> None:
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
def test_names_are_read_from_queries(query: str, found: list[tuple[str, set[str]]]) -> None:
    assert list(names(query)) == found


def test_label_values_are_those_of_the_exporter() -> None:
    """Reasons and stages are closed lists; the tables of the pages hold each of them."""
    blocked = page("MM2FailoverNotReady")
    assert [reason for reason in BlockReason if f"`{reason}`" not in blocked] == []
    failing = page("MM2CollectionFailing")
    assert [stage for stage in Stage if f"`{stage}`" not in failing] == []


def test_times_and_factors_are_those_of_the_rules() -> None:
    for memory in MEMORIES:
        (row,) = re.findall(rf"^\| `{memory.of}` \|.*$", page("MM2RecentlyPaged"), re.MULTILINE)
        assert f"({duration(memory.within)})" in row
    for pair in BURN_PAIRS:
        meaning = page(f"MM2ErrorBudgetBurn{pair.name.capitalize()}").partition("## Impact")[0]
        factor = f"{pair.factor(DEFAULT_WINDOW):.2f}".rstrip("0").rstrip(".")
        assert f"{pair.share:.0%}".replace("%", " %") in meaning
        assert f" {factor} times" in meaning
        assert f"{pair.min_bad} " in meaning


def _command(words: list[str]) -> Any:
    """The command that *words* lead to, and what is left of them.

    Commands of ours are loaded when they are run: what takes any argument is looked up in the
    module that has the rest.
    """
    found: Any = get_command(app)
    module, rest = "mm2slo_cli.", list(words)
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


def test_our_own_commands_can_be_run_as_they_stand() -> None:
    lines = [words[1:] for _, words in commands() if words[:1] == ["mm2slo"]]
    assert len(lines) > 20
    for line in lines:
        command, rest = _command(line)
        options = {
            option for each in command.params for option in (*each.opts, *each.secondary_opts)
        }
        assert {word for word in rest if word.startswith("--")} <= options, line
        print(line)
        command.make_context("mm2slo", rest)  # raises for a missing option or a wrong value


def test_kafkas_tools_know_their_options() -> None:
    lines = [(owner, words) for owner, words in commands() if words[:1] and words[0] in KAFKA]
    assert len(lines) > 40
    for owner, words in lines:
        known = {f"--{option}" for option in KAFKA[words[0]].split()}
        assert {word for word in words if word.startswith("--")} <= known, (owner, words)


def test_variables_of_the_shell_are_told_in_the_index() -> None:
    told = set(re.findall(r"^([A-Z]+)=", page("README"), re.MULTILINE))
    used = {
        variable
        for block in blocks()
        if block.language == "sh"
        for variable in re.findall(r"\$([A-Z]+)", block.text)
    }
    assert used == told
