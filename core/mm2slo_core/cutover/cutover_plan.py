"""The steps of a cutover as commands for Kafka's tools, in order; nothing here runs them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from enum import StrEnum
from typing import Literal, NamedTuple
from urllib.parse import quote

from mm2slo_core.config.exporter_settings import FlowSettings, PolicyKind


class MirrorForm(StrEnum):
    """How MirrorMaker 2 is run, which decides how its flow is stopped."""

    DEDICATED = "dedicated"
    CONNECT = "connect"
    STRIMZI = "strimzi"


class PlanStep(NamedTuple):
    title: str
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


_ALL_GROUPS = "--all-groups"


def plan_cutover(
    flow: FlowSettings, form: MirrorForm, *, source: str, target: str, config: str
) -> Iterator[PlanStep]:
    """The steps of a cutover of *flow*. *source*, *target*: bootstrap servers; *config*: options.

    For Kafka 2.8 and newer; connections with TLS or SASL need `--command-config FILE` as well.
    """
    label, alias = flow.label, flow.flow.source
    check = f"mm2slo cutover check {config} --flow {shlex.quote(label)}"
    yield PlanStep(
        "Days before: check that it would work",
        (f"{check} --phase ready",),
        ("Plan how each group starts that MirrorMaker 2 does not carry.",),
    )
    yield PlanStep(
        "Stop the producers of the source, and take away what allows them to write",
        (
            _tool("acls", source, "--list"),
            _tool(
                "acls", source, "--remove --allow-principal User:NAME --operation Write --topic T"
            ),
        ),
        (
            "Do not deny instead: MirrorMaker 2 copies a literal DENY to the target and never "
            "removes it (sync.topic.acls.enabled), so the producers would stay out there, too.",
        ),
    )
    yield PlanStep(
        "Let the consumers read to the end, then stop them",
        (
            _tool("consumer-groups", source, f"--describe {_ALL_GROUPS} --offsets"),
            _tool("consumer-groups", source, f"--describe {_ALL_GROUPS} --state"),
        ),
    )
    yield PlanStep(
        "Audit the flow, and ask the gate; go on only with exit code 0",
        (
            f"mm2slo audit {config} --flow {shlex.quote(label)} --since 24h",
            f"{check} --phase go",
        ),
        ("Start no consumer on the target before: its group would not be moved any more.",),
    )
    yield PlanStep(
        "Stop the flow, so that nothing late gets between",
        tuple(connector_command(flow, form, "stop")),
        (STRIMZI_NOTE,) if form is MirrorForm.STRIMZI else (),
    )
    yield PlanStep(
        "Record where the copies end: the way back starts there",
        (
            f"mm2slo failback record {config} --flow {shlex.quote(label)} "
            f"--out {flow.flow.slug}-$(date +%F).json",
        ),
        ("Before anything but MirrorMaker 2 writes to them; it cannot be read later.",),
    )
    named = (
        "Topics keep their names."
        if flow.policy.kind is PolicyKind.IDENTITY
        else f"A topic T is {alias}{flow.policy.separator}T there; consumers of a pattern need "
        "one that matches it."
    )
    yield PlanStep(
        "Start the consumers on the target, with the same group ids",
        (_tool("consumer-groups", target, f"--describe {_ALL_GROUPS} --offsets"),),
        (named,),
    )
    yield PlanStep(
        "Allow the producers to write on the target, and start them",
        (_tool("acls", target, "--add --allow-principal User:NAME --operation Write --topic T"),),
        ("MirrorMaker 2 copies no ACL that allows to write.",),
    )


def _tool(name: str, servers: str, arguments: str) -> str:
    return f"kafka-{name}.sh --bootstrap-server {servers} {arguments}"


def connector_command(
    flow: FlowSettings, form: MirrorForm, action: Literal["stop", "resume"]
) -> Iterator[str]:
    """How the source and the checkpoint connector of *flow* are stopped or started again."""
    match form:
        case MirrorForm.DEDICATED:
            enabled = "false" if action == "stop" else "true"
            yield f"# set {flow.label}.enabled = {enabled} in the properties file, and restart it"
        case MirrorForm.CONNECT:
            # KIP-875 (3.5): a stopped connector gives up its tasks; a paused one keeps them.
            for name in (flow.connect.source_connector, flow.connect.checkpoint_connector):
                yield f"curl --fail-with-body -X PUT {connect_url(flow, name)}/{action}"
        case MirrorForm.STRIMZI:
            state = "stopped" if action == "stop" else "running"
            for each in ("source", "checkpoint"):
                path = f"/spec/mirrors/0/{each}Connector/state"
                patch = f"[{{op: add, path: {path}, value: {state}}}]"
                resource = f"kafkamirrormaker2 NAME-{flow.flow.target}"
                yield f"kubectl patch {resource} --type json -p '{patch}'"


STRIMZI_NOTE = "Put the place of the flow in spec.mirrors for 0; leave out connectors it has not."


def connect_url(flow: FlowSettings, connector: str) -> str:
    """The URL of a connector of *flow*, with a host to fill in: its workers are at the target."""
    return f"http://CONNECT-{flow.flow.target}:8083/connectors/{quote(connector)}"
