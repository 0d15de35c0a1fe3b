"""Records that skip the transform that masks a header are unmasked, each named by offset."""

import pytest
from audit_scenario.audit_process import AuditRequest, audit
from audit_scenario.flow_waits import wait_all_committed, wait_copied
from audit_scenario.record_contents import now
from audit_scenario.scenario_steps import US_EU
from fault_injection import Content, named, write
from topic_reader import read_topic

from mm2slo_core.audit.audit_scope import Window
from mm2slo_core.audit.unit_outcome import Verdict
from mm2slo_lab.managed_process import wait_for
from mm2slo_lab.running_lab import Lab

pytestmark = [pytest.mark.lab, pytest.mark.long, pytest.mark.xdist_group("quiet-lab")]

RECORDS, SKIPPED, WITHOUT = 600, range(40, 600, 70), range(10, 600, 50)
UNMASKED = set(SKIPPED) - set(WITHOUT)
MASKING = {
    f"{US_EU.label}.{key}": value
    for key, value in {
        "transforms": "mask",
        "transforms.mask.type": "org.apache.kafka.connect.transforms.DropHeaders",
        "transforms.mask.headers": "ssn",
        "transforms.mask.predicate": "skipped",
        "transforms.mask.negate": "true",
        "predicates": "skipped",
        "predicates.skipped.type": "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
        "predicates.skipped.name": "skip",
    }.items()
}
FLOW = {"audit": {"identity": {"must_change": ["header:ssn"]}}}


def contents() -> list[tuple[int, Content]]:
    found = []
    for number in range(RECORDS):
        skip = (("skip", b""),) if number in SKIPPED else ()
        ssn = () if number in WITHOUT else (("ssn", f"secret {number}".encode()),)
        content = Content(now(), f"k{number % 20}".encode(), f"v{number}".encode(), (*skip, *ssn))
        found.append((number % 20 % 2, content))
    return found


def wait_until_masking(lab: Lab, topic: str, copy: str) -> int:
    """Send probes until one arrives masked; returns their number.

    MirrorMaker 2 starts its tasks with the settings of the last run, and applies new ones soon.
    """
    source, target = lab.cluster("us").librdkafka(), lab.cluster("eu").librdkafka()
    sent = 0

    def is_masking() -> bool:
        nonlocal sent
        write(source, topic, [(0, Content(now(), b"probe", b"", (("ssn", b"probe"),)))])
        sent += 1
        wait_copied(lab, US_EU, copy, sent)
        return not read_topic(target, copy)[-1].headers()

    wait_for(is_masking, "a masked probe")
    return sent


def test_records_that_skip_the_masking_transform_are_unmasked(lab: Lab, fresh_topic: str) -> None:
    us, copy = lab.cluster("us"), f"us.{fresh_topic}"
    us.admin.create_topic(fresh_topic, 2)
    lab.mm2.configure(MASKING)
    lab.mm2.restart()
    try:
        probes = wait_until_masking(lab, fresh_topic, copy)
        start = now()
        stored = write(us.librdkafka(), fresh_topic, contents())
        wait_copied(lab, US_EU, copy, probes + RECORDS)
        wait_all_committed(lab, US_EU, fresh_topic)
    finally:
        lab.mm2.stop()
        lab.mm2.configure({})
        lab.mm2.start()
    config = lab.config_yaml(flow=FLOW)
    result = audit(AuditRequest(config, Window(start, now()), topics=(fresh_topic,)))

    outcome = result.outcomes[copy]
    assert {verdict: n for verdict, n in outcome.counts.items() if n} == {
        Verdict.MATCHED: RECORDS,
        Verdict.UNMASKED: len(UNMASKED),
    }
    places = {
        (found.partition, found.offset) for found in named(outcome.evidence)[Verdict.UNMASKED]
    }
    assert places == {stored[number].place for number in UNMASKED}
    assert (result.conclusion.exit_code, "faults: 6 unmasked" in result.conclusion.line) == (
        1,
        True,
    )
