"""Fake canary processes, in a module that a new process can import."""

import os
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection

from mm2slo_exporter.canary import canary_process
from mm2slo_exporter.canary.canary_messages import CanarySpec, RestoreFinished
from mm2slo_exporter.canary.canary_sender import SendLoop


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
