"""The process that asks: `python -m mm2slo_kafka.group_offsets.answering FD`.

It answers over the socket with that file descriptor until the other end is closed.
"""

from __future__ import annotations

import logging
import signal
import sys
from multiprocessing.connection import Connection

from mm2slo_kafka.errors import KafkaOperationError
from mm2slo_kafka.group_offsets.asking import read_group_offsets
from mm2slo_kafka.group_offsets.messages import Answer, Ask, Cluster, Failed
from mm2slo_kafka.handles import HandleFactory


def serve(connection: Connection[Answer, Cluster | Ask]) -> None:
    """Answer until nobody asks any more."""
    cluster = connection.recv()
    assert isinstance(cluster, Cluster)  # noqa: S101 - the protocol, for the type checker
    handles = HandleFactory(cluster.alias, cluster.properties)
    admin = handles.admin()
    while True:
        try:
            ask = connection.recv()
        except EOFError:
            return
        assert isinstance(ask, Ask)  # noqa: S101 - as above
        found = read_group_offsets(
            handles, admin, ask.groups, max_in_flight=ask.max_in_flight, timeout=ask.timeout
        )
        answers = {
            group: Failed(each.kind, each.detail, each.code)
            if isinstance(each, KafkaOperationError)
            else each
            for group, each in found.items()
        }
        connection.send(Answer(answers, handles.counts.totals()))


if __name__ == "__main__":
    # Ctrl-C is told to every process of a terminal; this one ends with the one that asks.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The asking process has clients of the same cluster, which log the same.
    logging.getLogger().addHandler(logging.NullHandler())
    with Connection(int(sys.argv[1])) as socket:
        serve(socket)
