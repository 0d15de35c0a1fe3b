"""Where the flow back starts: nothing is left out, and what returns twice is bounded."""

import json
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from flow_observations import flow_config
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_core.cutover.cutover_plan import MirrorForm
from mm2slo_core.cutover.failback_plan import (
    CopyFacts,
    StartBasis,
    alter_offsets,
    failback_steps,
    offset_records,
    plan_start,
    reversed_settings,
    sort_topics,
    strimzi_config_map,
)
from mm2slo_core.records.connect_records import SourceOffset
from mm2slo_core.topology import Flow, TopicPartition

ORDERS = TopicPartition("orders", 0)
BACK = Flow("eu", "us")
IDENTITY = {"kind": "identity"}


class Sync(NamedTuple):
    upstream: int
    downstream: int


RECORDED = CopyFacts(log_start=0, end=150, sync=Sync(90, 90), source_end=100, recorded=100)


@given(st.data())
def test_nothing_is_left_out_and_duplicates_are_bounded(data: st.DataObject) -> None:
    """Source records, their copies, then new records: what is known may be any part of it."""
    numbers = st.integers(0, 50)
    shift, source = data.draw(numbers, "shift"), data.draw(st.integers(1, 50), "source records")
    copied = data.draw(st.integers(1, source), "copied records")
    end = shift + copied + data.draw(numbers, "new records")
    synced = data.draw(st.integers(0, copied - 1), "record of the sync")
    is_written = data.draw(st.booleans(), "written before it was recorded")
    facts = CopyFacts(
        log_start=data.draw(st.integers(0, end), "log start"),
        end=end,
        sync=data.draw(st.sampled_from([None, Sync(synced, shift + synced)])),
        source_end=data.draw(st.sampled_from([None, source])),
        recorded=None if is_written else shift + copied,
    )
    plan = plan_start(ORDERS, facts)
    first_new = shift + copied
    if plan.start is None:
        assert facts.recorded is None
        assert facts.sync is None
        return
    assert plan.start <= first_new
    assert plan.start + plan.again >= first_new
    assert plan.start + plan.gone + plan.returning == end
    assert (plan.basis is StartBasis.RECORDED) == (facts.recorded is not None)
    if facts.end > shift + source and facts.sync and facts.source_end is not None:
        assert facts.is_written


def test_recorded_end_is_the_start() -> None:
    plan = plan_start(ORDERS, RECORDED)
    assert (plan.start, plan.again, plan.returning, plan.unplanned) == (100, 0, 50, 100)


def test_without_a_recorded_end_the_sync_bounds_it() -> None:
    plan = plan_start(ORDERS, replace(RECORDED, recorded=None))
    assert (plan.start, plan.again, plan.basis) == (91, 9, StartBasis.SYNC)


def test_flow_that_copied_on_after_the_record_is_counted() -> None:
    plan = plan_start(ORDERS, replace(RECORDED, sync=Sync(119, 119)))
    assert (plan.start, plan.again) == (100, 20)


def test_without_the_plan_the_flow_resumes_at_its_position() -> None:
    assert plan_start(ORDERS, replace(RECORDED, position=70)).unplanned == 30
    assert plan_start(ORDERS, replace(RECORDED, position=100)).unplanned == 0
    assert plan_start(ORDERS, replace(RECORDED, log_start=60)).unplanned == 40


def test_what_retention_removed_never_returns() -> None:
    plan = plan_start(ORDERS, replace(RECORDED, log_start=130))
    assert (plan.start, plan.gone, plan.returning) == (100, 30, 20)


def test_partition_that_the_source_never_had_returns_from_its_start() -> None:
    plan = plan_start(ORDERS, CopyFacts(0, 40, source_end=0))
    assert (plan.start, plan.again, plan.returning) == (0, 0, 40)


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (CopyFacts(0, 40, source_end=12), "neither its end was recorded nor has it an offset sync"),
        (CopyFacts(0, 40), "neither its end was recorded nor has it an offset sync"),
        (replace(RECORDED, end=99), "it ends at 99, below 100: truncated or created again"),
        (CopyFacts(0, 40, Sync(50, 50), 60), "it ends at 40, below 51: truncated or created again"),
    ],
)
def test_start_is_not_guessed(facts: CopyFacts, reason: str) -> None:
    plan = plan_start(ORDERS, facts)
    assert (plan.start, plan.problem) == (None, reason)


def test_copies_return_with_the_identity_policy_and_never_with_the_default_one() -> None:
    there = ["orders", "us.orders", "eu-only", "us.checkpoints.internal", "heartbeats", "__x"]
    identity = flow_config(policy=IDENTITY)
    found = sort_topics(identity, reversed_settings(identity), ["orders", "heartbeats", "__x"])
    assert (found.returning, found.never, found.own) == ({"orders": "orders"}, [], [])
    default = flow_config()
    found = sort_topics(default, reversed_settings(default), there)
    assert (found.returning, found.never, found.own) == ({}, ["us.orders"], ["eu-only", "orders"])


def test_copy_that_the_flow_back_does_not_select_never_returns() -> None:
    identity = flow_config(policy=IDENTITY)
    back = flow_config(flow="eu->us", policy=IDENTITY, topics_exclude=("audit.*",))
    found = sort_topics(identity, back, ["orders", "audit.log"])
    assert (found.returning, found.never) == ({"orders": "orders"}, ["audit.log"])


def test_names_of_the_flow_back_follow_those_of_the_flow() -> None:
    names = {"source_connector": "us->eu.MirrorSourceConnector"}
    back = reversed_settings(flow_config(connect=names))
    assert back.label == "eu->us"
    assert back.connect.source_connector == "eu->us.MirrorSourceConnector"
    assert reversed_settings(flow_config()).connect.source_connector == "MirrorSourceConnector"


STARTS = [
    plan_start(ORDERS, RECORDED),
    plan_start(TopicPartition("orders", 1), CopyFacts(0, 40, source_end=0)),
    plan_start(TopicPartition("orders", 2), CopyFacts(0, 40)),
]


def test_connector_resumes_after_the_offset_that_is_set() -> None:
    """A start at 0 is no position; a partition whose start is not known is left as it is."""
    assert alter_offsets(BACK, STARTS) == {
        "offsets": [
            {
                "partition": {"cluster": "eu", "partition": 0, "topic": "orders"},
                "offset": {"offset": 99},
            },
            {"partition": {"cluster": "eu", "partition": 1, "topic": "orders"}, "offset": None},
        ]
    }


def test_strimzi_finds_the_positions_by_the_name_of_the_connector() -> None:
    body = alter_offsets(BACK, STARTS)
    manifest = json.loads(strimzi_config_map("eu->us.MirrorSourceConnector", body, "failback"))
    assert json.loads(manifest["data"]["eu--us.MirrorSourceConnector.json"]) == body


def test_records_of_dedicated_mode_are_those_of_connect() -> None:
    (line,) = offset_records("MirrorSourceConnector", BACK, STARTS)
    key, _, value = line.rstrip("\n").partition("\t")
    found = SourceOffset.decode(key.encode(), value.encode())
    assert found == SourceOffset("MirrorSourceConnector", "eu", ORDERS, 99)


def steps(form: MirrorForm, **options: Any) -> str:
    flow = flow_config(policy=IDENTITY)
    given: dict[str, Any] = {"servers": "us:9092", "offsets_topic": "offsets", "file": "back.json"}
    found = failback_steps(flow, reversed_settings(flow), form, **given | options)
    return "\n".join(line for step in found for line in (step.title, *step.notes, *step.commands))


def test_old_flow_is_stopped_before_the_flow_back_starts() -> None:
    for form in MirrorForm:
        text = steps(form)
        assert text.index("Stop us->eu") < text.index("Start eu->us")


def test_dedicated_mode_needs_its_topic_and_its_old_flow_disabled_before() -> None:
    text = steps(MirrorForm.DEDICATED, offsets_topic=None)
    assert "--create --topic mm2-offsets.eu.internal" in text
    assert "cleanup.policy=compact" in text
    assert "parse.key=true < back.json" in text
    assert "runs a flow with its former settings for a moment" in text
    assert "--create" not in steps(MirrorForm.DEDICATED)


def test_positions_are_set_while_the_connector_is_stopped() -> None:
    text = steps(MirrorForm.CONNECT)
    stop, patch, resume = (text.index(each) for each in ("r/stop", "-X PATCH", "r/resume"))
    assert text.index("CONNECT-us:8083/connectors/MirrorSourceConnector/stop") < patch < resume
    assert stop < patch
    strimzi = steps(MirrorForm.STRIMZI)
    assert strimzi.index("value: stopped") < strimzi.index("connector-offsets=alter")
    assert strimzi.index("connector-offsets=alter") < strimzi.index("value: running")
