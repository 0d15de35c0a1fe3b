"""Functions for workers of the fork server; as a program, a fork server of little patience."""

import os
import signal
import sys
from multiprocessing.connection import Connection

from mm2slo_kafka import fork_server_process


def echo(connection: Connection, *arguments: object) -> None:
    """Send the arguments, then back what is received."""
    connection.send(arguments)
    try:
        while True:
            connection.send(connection.recv())
    except EOFError:
        return


def raise_error(connection: Connection) -> None:
    raise ValueError("unexpected")


def hang(connection: Connection) -> None:
    """Outlive the pipe."""
    connection.send(os.getpid())
    while True:
        signal.pause()


def use_asyncio(connection: Connection) -> None:
    """Send which of these modules are loaded before and after confluent_kafka uses asyncio."""
    watched = {"confluent_kafka", "asyncio"}
    before = watched & sys.modules.keys()
    serde_builder = sys.modules["confluent_kafka._serde_builder"]
    assert serde_builder.asyncio.shield.__module__ == "asyncio.tasks"
    connection.send((before, watched & sys.modules.keys()))


if __name__ == "__main__":
    vars(fork_server_process).update(_ORPHANED_SECONDS=1)
    fork_server_process.main(int(sys.argv[1]))
