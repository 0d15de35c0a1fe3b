"""The server.properties of a lab broker (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mm2slo_lab.broker_tls import STORE_PASSWORD
from mm2slo_lab.lab_topology import ADMIN, APP, Security
from mm2slo_lab.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mm2slo_lab.broker_tls import TlsFiles

NODE_ID = 1
# One node has both roles, so every internal topic has one replica; partitions are few because each
# costs startup time. Retention, log cleaner and segment deletion run every second instead of every
# five minutes, for tests and demos of retention.
_BASE = {
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "controller.listener.names": "CONTROLLER",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "num.partitions": "1",
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    # No records of the controller while nothing changes: a fifth of an idle broker's CPU.
    "metadata.max.idle.interval.ms": "0",
    "log.retention.check.interval.ms": "1000",
    "log.initial.task.delay.ms": "1000",
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.threads": "1",
    # The default of 128 MiB does not fit a small heap.
    "log.cleaner.dedupe.buffer.size": "8388608",
    "log.cleaner.backoff.ms": "1000",
}


def server_properties(
    *,
    port: int,
    controller_port: int,
    log_directory: Path,
    security: Security,
    tls: TlsFiles | None,
    overrides: Mapping[str, str],
) -> dict[str, str]:
    """Return the properties of a broker; *overrides* take precedence.

    *tls* is required for SASL_SSL only.
    """
    return {
        **_BASE,
        "controller.quorum.voters": f"{NODE_ID}@{HOST}:{controller_port}",
        "listeners": f"CLIENT://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"CLIENT://{HOST}:{port}",
        "listener.security.protocol.map": f"CLIENT:{security},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "log.dirs": str(log_directory),
        **_secured(security, tls),
        **overrides,
    }


def _secured(security: Security, tls: TlsFiles | None) -> dict[str, str]:
    if security is Security.PLAINTEXT:
        return {}
    secured = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The controller listener has no SASL: its only client is this process.
        "super.users": f"User:{ADMIN.name};User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
    }
    if security is Security.SASL_PLAINTEXT:
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        return {
            **secured,
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "listener.name.client.plain.sasl.jaas.config": (
                f'{module} required username="{ADMIN.name}" password="{ADMIN.password}"'
                f' user_{ADMIN.name}="{ADMIN.password}" user_{APP.name}="{APP.password}";'
            ),
        }
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        **secured,
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
        "listener.name.client.scram-sha-512.sasl.jaas.config": (
            f'{module} required username="{ADMIN.name}" password="{ADMIN.password}";'
        ),
        **_tls(tls),
    }


def _tls(tls: TlsFiles | None) -> dict[str, str]:
    if tls is None:
        return {}
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(tls.keystore),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        # The broker is also its own client.
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tls.ca_file),
    }
