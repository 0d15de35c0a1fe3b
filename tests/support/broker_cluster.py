"""Starts one Kafka cluster of several brokers; the lab's clusters have one."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from mm2slo_core.file_syntax import dump_properties
from mm2slo_lab.broker import _kafka_uuid, formatted_log, write_log_directory
from mm2slo_lab.broker_properties import server_properties
from mm2slo_lab.kafka_runtime import Runtime
from mm2slo_lab.lab_topology import DEFAULT_VERSION, LabSecurity
from mm2slo_lab.managed_process import HOST, ManagedProcess, accepts, free_ports

_SETTINGS = {"log.retention.check.interval.ms": "300000", "log.index.size.max.bytes": "65536"}


@contextmanager
def start_brokers(count: int, heap: int) -> Iterator[list[str]]:
    """`host:port` of each broker; the first one is the controller too. *heap* is in MiB."""
    root = Path(tempfile.mkdtemp(prefix="mm2slo-brokers-"))
    runtime = Runtime.prepare(DEFAULT_VERSION, root)
    controller, *clients = free_ports(count + 1)
    cluster_id = _kafka_uuid()
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        for number, port in enumerate(clients, 1):
            name, folder = f"broker-{number}", root / f"broker-{number}"
            properties = server_properties(
                port=port,
                controller_port=controller,
                log_directory=folder / "data",
                security=LabSecurity.PLAINTEXT,
                tls=None,
                overrides={**_SETTINGS, "node.id": str(number)},
            )
            if number > 1:
                properties["process.roles"] = "broker"
                properties["listeners"] = properties["advertised.listeners"]
            folder.mkdir()
            (folder / "server.properties").write_text(dump_properties(properties))
            template = formatted_log(runtime, DEFAULT_VERSION)
            write_log_directory(folder / "data", number, template, cluster_id)
            spec = runtime.spec(name, heap, "kafka.Kafka", str(folder / "server.properties"))
            broker = ManagedProcess(spec)
            stack.callback(broker.stop)
            broker.start()
            broker.wait_until(partial(accepts, port), "serving clients")
        yield [f"{HOST}:{port}" for port in clients]
