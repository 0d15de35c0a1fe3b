"""What the canary process runs in tests; here, because a new process must be able to import it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mm2slo_exporter.canary.events import Restored

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from mm2slo_exporter.canary.spec import CanarySpec


def echo(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Tell the flows, then the floor of each hint, until the pipe is closed."""
    connection.send([Restored(each.flow, 0.0) for each in specs])
    try:
        while True:
            hints = connection.recv()
            connection.send([Restored(flow, float(hint[0])) for flow, hint in hints.items()])
    except EOFError:
        return


def die(connection: Connection, specs: Sequence[CanarySpec]) -> None:
    """Tell one event and die."""
    connection.send([Restored(specs[0].flow, float(os.getpid()))])
    connection.close()
    os._exit(3)
