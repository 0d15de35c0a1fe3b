"""The steps of a cutover as commands."""

from typing import Any

import pytest
from flow_observations import flow_config

from mm2slo_core.cutover.cutover_plan import MirrorForm, PlanStep, plan_cutover


def plan(form: MirrorForm = MirrorForm.DEDICATED, **flow: Any) -> list[PlanStep]:
    steps = plan_cutover(
        flow_config(**flow), form, source="us:9092", target="eu:9092", config="--config my.yaml"
    )
    return list(steps)


def commands(steps: list[PlanStep]) -> list[str]:
    return [command for step in steps for command in step.commands]


def test_consumers_start_on_the_target_only_after_the_gate() -> None:
    found = commands(plan())
    gate = found.index("mm2slo cutover check --config my.yaml --flow 'us->eu' --phase go")
    at_target = [number for number, each in enumerate(found) if "eu:9092" in each]
    assert at_target
    assert min(at_target) > gate
    assert all("us:9092" in each or "mm2slo" in each for each in found[: gate + 1])


def test_producers_are_not_denied_because_the_target_would_get_a_copy() -> None:
    assert not any("deny" in each for each in commands(plan()))
    notes = " ".join(note for step in plan() for note in step.notes)
    assert "copies a literal DENY to the target" in notes


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (MirrorForm.DEDICATED, "us->eu.enabled = false"),
        (MirrorForm.CONNECT, "/connectors/us-%3Eeu.MirrorCheckpointConnector/stop"),
        (MirrorForm.STRIMZI, "/spec/mirrors/0/sourceConnector/state, value: stopped"),
    ],
)
def test_flow_is_stopped_as_it_is_run(form: MirrorForm, expected: str) -> None:
    names = {
        "source_connector": "us->eu.MirrorSourceConnector",
        "checkpoint_connector": "us->eu.MirrorCheckpointConnector",
    }
    assert any(expected in each for each in commands(plan(form, connect=names)))


def test_names_on_the_target_follow_the_policy() -> None:
    def notes(**flow: Any) -> str:
        return " ".join(note for step in plan(**flow) for note in step.notes)

    assert "us_T there" in notes(policy={"separator": "_"})
    assert "Topics keep their names." in notes(policy={"kind": "identity"})
