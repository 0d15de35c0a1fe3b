"""Connector, task and flow of a worker's lines; lines are from real workers."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from mm2slo_logship.log_events import (
    Line,
    Parser,
    ParserSettings,
    ThreadFlows,
    connector_flows,
    read_context,
    shown_flow,
)


def rows(name: str) -> list[dict[str, Any]]:
    found = yaml.safe_load(Path(__file__).with_name(name).read_text(encoding="utf-8"))
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("row", rows("contexts.yaml"))
def test_context_is_read_from_mdc_thread_or_message(row: dict[str, Any]) -> None:
    found = read_context(row["context"], row["thread"], row["message"])

    assert list(found) == row["expected"]


@pytest.mark.parametrize("row", rows("flow_carriers.yaml"))
def test_flow_is_read_only_where_the_line_shows_it(row: dict[str, Any]) -> None:
    assert shown_flow(row["thread"], row["message"], ParserSettings()) == row["flow"]


def test_flow_of_unknown_aliases_is_not_taken() -> None:
    settings = ParserSettings(flows=frozenset({"eu->us"}))

    assert shown_flow("", "[Worker clientId=us->eu, groupId=us-mm2] x", settings) == ""
    assert shown_flow("", "[Worker clientId=eu->us, groupId=eu-mm2] x", settings) == "eu->us"


def worker_flow(parser: Parser, thread: str, thread_id: int, message: str) -> object:
    line = (
        f'{{"timestamp":"2026-11-22T17:14:01Z","level":"INFO","context":"",'
        f'"logger":"org.apache.kafka.connect.mirror.MirrorSourceTask","thread":"{thread}",'
        f'"thread_id":"{thread_id}","worker_start":"1","message":"{message}"}}'
    ).encode()
    (event,) = parser.feed([Line(0, len(line), line)])
    return event.fields["flow"]


def test_task_thread_keeps_the_flow_that_its_task_showed_at_its_start() -> None:
    parser = Parser(ParserSettings())
    thread = "task-thread-MirrorSourceConnector-0"

    for number, flow in ((57, "us->eu"), (58, "eu->us")):
        started = f"{thread} replicating 1 topic-partitions {flow}: [a-0]."
        assert worker_flow(parser, thread, number, started) == flow

    assert worker_flow(parser, thread, 57, "Failure during poll.") == "us->eu"
    assert worker_flow(parser, thread, 58, "Failure during poll.") == "eu->us"
    assert worker_flow(parser, thread, 59, "Failure during poll.") == "unresolved"


def test_thread_that_serves_all_flows_keeps_none() -> None:
    parser = Parser(ParserSettings())

    assert worker_flow(parser, "main", 1, "[Worker clientId=us->eu, groupId=a] x") == "us->eu"
    assert worker_flow(parser, "main", 1, "other") == "unresolved"


def test_connector_of_a_connect_cluster_gives_its_flow() -> None:
    parser = Parser(ParserSettings(connector_flows={"us-to-eu-source": "us->eu"}))

    assert worker_flow(parser, "task-thread-us-to-eu-source-0", 1, "x") == "us->eu"


def test_names_of_several_flows_and_of_dedicated_mode_have_no_flow() -> None:
    assert connector_flows(
        [
            ("us-to-eu", "us->eu"),
            ("us-to-eu", "us->eu"),
            ("heartbeats", "us->eu"),
            ("heartbeats", "eu->us"),
            ("MirrorSourceConnector", "us->eu"),
        ]
    ) == {"us-to-eu": "us->eu"}


def test_thread_flows_forget_the_oldest() -> None:
    flows = ThreadFlows()
    for number in range(10_001):
        flows.learn("start", str(number), "us->eu")

    assert flows.flow("start", "0") == ""
    assert flows.flow("start", "1") == "us->eu"
    assert flows.flow("later start", "1") == ""
