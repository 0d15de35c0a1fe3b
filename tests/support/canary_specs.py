"""The settings of one flow for the canary process."""

import os
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from mm2slo_exporter.canary import canary_process
from mm2slo_exporter.canary.canary_messages import CanarySpec, RestoreFinished
from mm2slo_exporter.canary.canary_sender import SendLoop


def spec(**changes: Any) -> CanarySpec:
    fields: dict[str, Any] = {
        "flow": "us->eu",
        "instance": "here",
        "source_alias": "us",
        "target_alias": "eu",
        "source_client": {"sasl.password": "s3cret"},
        "target_client": {"sasl.password": "s3cret"},
        "heartbeats_topic_on_target": "us.heartbeats",
        "carrier": "topic",
        "source_topic": "mm2slo.canary",
        "target_topic": "us.mm2slo.canary",
        "interval_seconds": 1.0,
        "restore_seconds": 3600.0,
    }
    return CanarySpec(**fields | changes)


def echo(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Report the flows, then the floor of each ledger state, until the pipe is closed."""
    connection.send([RestoreFinished(each.flow, 0.0) for each in specs])
    try:
        while True:
            states = connection.recv()
            connection.send(
                [RestoreFinished(flow, float(state[0])) for flow, state in states.items()]
            )
    except EOFError:
        return


def die(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Report one event and exit."""
    connection.send([RestoreFinished(specs[0].flow, float(os.getpid()))])
    connection.close()
    os._exit(3)


class _FailingLoop(SendLoop):
    def run(self, stopping: threading.Event) -> None:
        raise ValueError("unexpected")


def run_with_failing_sender(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Run the canary process with a sending thread that raises an unexpected exception."""
    vars(canary_process).update(SendLoop=_FailingLoop)
    canary_process.run_canary_process(connection, specs)
