"""The worker process: `python -m mm2slo_kafka.group_worker_process FD`.

It serves requests on the socket with that file descriptor until the peer closes it.
"""

import logging
import signal
import sys
from multiprocessing.connection import Connection

from mm2slo_kafka.client_handles import HandleFactory
from mm2slo_kafka.group_worker import (
    ClusterProperties,
    GroupAnswer,
    GroupsRequest,
    RequestEnded,
    request_groups,
)


def serve(
    connection: "Connection[GroupAnswer | RequestEnded, ClusterProperties | GroupsRequest]",
) -> None:
    """Serve requests until the parent closes the connection."""
    cluster = connection.recv()
    assert isinstance(cluster, ClusterProperties)  # noqa: S101 - the protocol, for the type checker
    handles = HandleFactory(cluster.alias, cluster.properties)
    admin = handles.admin()
    while True:
        try:
            request = connection.recv()
        except EOFError:
            return
        assert isinstance(request, GroupsRequest)  # noqa: S101 - the protocol, for the type checker
        for answer in request_groups(handles, admin, request):
            connection.send(answer)
        connection.send(RequestEnded(handles.counts.totals()))


if __name__ == "__main__":
    # Ctrl-C reaches every process of a terminal; this one ends with its parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The parent's clients of the same cluster log the same.
    logging.getLogger().addHandler(logging.NullHandler())
    with Connection(int(sys.argv[1])) as socket:
        serve(socket)
