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
    RecordedPartition,
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
from mm2slo_core.user_errors import UserError

ORDERS = TopicPartition("orders", 0)
BACK = Flow("eu", "us")
IDENTITY = {"kind": "identity"}


class Sync(NamedTuple):
    upstream: int
    downstream: int


ENDS = RecordedPartition(100, 100, proved=True)
RECORDED = CopyFacts(log_start=0, end=150, sync=Sync(90, 90), source_end=100, recorded=ENDS)


@given(st.data())
def test_nothing_is_left_out_and_duplicates_are_bounded(data: st.DataObject) -> None:
    """Source records, their copies, then new records: what is known may be any part of it."""
    numbers = st.integers(0, 50)
    shift, source = data.draw(numbers, "shift"), data.draw(st.integers(1, 50), "source records")
    copied = data.draw(st.integers(1, source), "copied records")
    end = shift + copied + data.draw(numbers, "new records")
    synced = data.draw(st.integers(0, copied - 1), "record of the sync")
    sync = Sync(synced, shift + synced)
    facts = CopyFacts(
        log_start=data.draw(st.integers(0, end), "log start"),
        end=end,
        sync=data.draw(st.sampled_from([None, sync])),
        source_end=source,
        dense=data.draw(st.booleans(), "dense"),
        moved_sync=data.draw(st.sampled_from([None, sync]), "sync before the move"),
    )
    if data.draw(st.booleans(), "recorded"):
        then = replace(facts, end=shift + copied, committed=copied - 1)
        assert not then.is_written
        facts = replace(facts, recorded=RecordedPartition(then.end, source, then.is_proved))
    plan = plan_start(ORDERS, facts)
    first_new = shift + copied
    if plan.start is None:
        assert facts.recorded is None
        assert facts.moved_sync is None
        return
    assert plan.start - plan.gone <= first_new
    assert plan.start + plan.again >= first_new
    assert plan.start + plan.returning == end
    assert (plan.basis is StartBasis.RECORDED) == (facts.recorded is not None)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_records_of_others_are_proved_or_not_proved_never_denied(
    copied_since: int, tail: int, written: int
) -> None:
    """Records after the sync that were copied, those that were not, and those of others."""
    facts = CopyFacts(
        log_start=0,
        end=91 + copied_since + written,
        sync=Sync(90, 90),
        source_end=91 + copied_since + tail,
        committed=90 + copied_since,
    )
    assert not (facts.is_written and facts.is_proved)
    if facts.is_written:
        assert written
    if facts.is_proved:
        assert not written


def test_recorded_end_is_the_start() -> None:
    plan = plan_start(ORDERS, RECORDED)
    assert (plan.start, plan.again, plan.returning, plan.unplanned) == (100, 0, 50, 100)
    assert plan.proved


def test_without_a_recorded_end_the_sync_before_the_move_bounds_it() -> None:
    facts = replace(RECORDED, recorded=None, moved_sync=Sync(90, 90))
    plan = plan_start(ORDERS, facts)
    assert (plan.start, plan.again, plan.basis) == (91, 9, StartBasis.SYNC)
    assert plan_start(ORDERS, replace(facts, dense=False)).again == 59


def test_sync_of_a_flow_that_went_on_after_the_move_is_no_start() -> None:
    """New records are below it: us->eu has copied the rest of its source after them."""
    plan = plan_start(ORDERS, CopyFacts(0, 170, Sync(119, 169), source_end=120))
    assert (plan.start, plan.problem.startswith("its end was not recorded")) == (None, True)


def test_flow_that_copied_on_after_the_record_is_counted() -> None:
    plan = plan_start(ORDERS, replace(RECORDED, sync=Sync(119, 119), source_end=120))
    assert (plan.start, plan.again, plan.uncopied) == (100, 20, 20)


def test_records_that_were_never_copied_are_named() -> None:
    plan = plan_start(ORDERS, replace(RECORDED, source_end=120))
    assert (plan.start, plan.uncopied, plan.again) == (100, 20, 20)


def test_without_the_plan_the_flow_resumes_at_its_position() -> None:
    assert plan_start(ORDERS, replace(RECORDED, position=70)).unplanned == 30
    assert plan_start(ORDERS, replace(RECORDED, position=100)).unplanned == 0
    assert plan_start(ORDERS, replace(RECORDED, log_start=60)).unplanned == 40


def test_position_that_is_further_already_stays() -> None:
    plan = plan_start(ORDERS, replace(RECORDED, position=130))
    assert (plan.start, plan.basis, plan.returning) == (130, StartBasis.RETURNED, 20)
    assert alter_offsets(BACK, [plan]) == {"offsets": []}
    assert list(offset_records("MirrorSourceConnector", BACK, [plan])) == []


def test_what_retention_removed_never_returns() -> None:
    """A position below the log would be left to auto.offset.reset."""
    plan = plan_start(ORDERS, replace(RECORDED, log_start=130))
    assert (plan.start, plan.gone, plan.returning) == (130, 30, 20)


def test_what_the_source_never_had_returns_from_its_start() -> None:
    """Also if its end was recorded: with the identity policy it looks like a copy."""
    for recorded in (None, RecordedPartition(40)):
        plan = plan_start(ORDERS, CopyFacts(0, 40, source_end=0, recorded=recorded))
        assert (plan.start, plan.again, plan.returning) == (0, 0, 40)


def test_log_that_was_created_since_returns_with_what_the_flow_copied_to_it() -> None:
    new = CopyFacts(0, 40, Sync(5, 5), source_end=12, is_new=True)
    assert (plan_start(ORDERS, new).start, plan_start(ORDERS, new).again) == (0, 12)
    assert plan_start(ORDERS, replace(new, dense=False)).again == 40


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (CopyFacts(0, 40, source_end=12), "its end was not recorded"),
        (replace(RECORDED, recorded=RecordedPartition(None, 100)), "its end was not recorded"),
        (replace(RECORDED, end=99), "it ends at 99, below 100: truncated or created again"),
        (replace(RECORDED, source_end=None), "the end of its source was not read"),
        (replace(RECORDED, source_end=80), "its source ends at 80, and was at 100 or beyond"),
        (replace(RECORDED, source_is_new=True), "its source ends at 100, and was at 100"),
    ],
)
def test_start_is_not_guessed(facts: CopyFacts, reason: str) -> None:
    plan = plan_start(ORDERS, facts)
    assert (plan.start, plan.problem.startswith(reason)) == (None, True)


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
    """A start at 0 removes a position, as Connect does, by a record without a value."""
    lines = list(offset_records("MirrorSourceConnector", BACK, STARTS))
    key, _, value = lines[0].rstrip("\n").partition("\t")
    found = SourceOffset.decode(key.encode(), value.encode())
    assert found == SourceOffset("MirrorSourceConnector", "eu", ORDERS, 99)
    assert [each.rstrip("\n").partition("\t")[2] for each in lines[1:]] == ["NULL"]


def steps(form: MirrorForm, **options: Any) -> str:
    flow = flow_config(policy=IDENTITY)
    given: dict[str, Any] = {"servers": "us:9092", "has_offsets_topic": True, "file": "back.json"}
    found = failback_steps(flow, reversed_settings(flow), form, **given | options)
    return "\n".join(line for step in found for line in (step.title, *step.notes, *step.commands))


def test_old_flow_is_stopped_before_the_flow_back_starts() -> None:
    assert steps(MirrorForm.DEDICATED).index("Stop us->eu") < steps(MirrorForm.DEDICATED).index(
        "Start eu->us"
    )
    connect = steps(MirrorForm.CONNECT)
    assert connect.index("CONNECT-eu:8083/connectors/MirrorSourceConnector/stop") < connect.index(
        "CONNECT-us:8083/connectors/MirrorSourceConnector/resume"
    )


def test_dedicated_mode_needs_its_topic_and_its_old_flow_disabled_before() -> None:
    text = steps(MirrorForm.DEDICATED, has_offsets_topic=False)
    assert "--create --topic mm2-offsets.eu.internal" in text
    assert "cleanup.policy=compact" in text
    assert "parse.key=true --property null.marker=NULL < back.json" in text
    assert "runs a flow with its former settings for a moment" in text
    assert "--create" not in steps(MirrorForm.DEDICATED)


def test_flow_back_starts_only_with_its_positions() -> None:
    """Connect: a failed request ends the line; Strimzi: the operator works in the background."""
    connect = steps(MirrorForm.CONNECT)
    (line,) = (each for each in connect.splitlines() if "PATCH" in each)
    assert line.index("/offsets && ") < line.index("/resume")
    strimzi = steps(MirrorForm.STRIMZI)
    places = [
        strimzi.index(each)
        for each in ("NAME-us --type", "connector-offsets=alter", "until [", "value: running")
    ]
    assert places == sorted(places)
    assert "NAME-eu" in strimzi


def test_connector_whose_name_is_not_known_is_not_guessed() -> None:
    names = {"source_connector": "mm2-source", "offsets_topic": "connect-offsets"}
    with pytest.raises(UserError, match="eu->us is not configured, and 'mm2-source' does not"):
        reversed_settings(flow_config(connect=names))
