"""Properties of a lab broker and of its clients, and the certificate that they name.

The server.properties; client properties for librdkafka, Java and mm2slo.yaml. Key and certificate
are created with the JDK's keytool.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mm2slo_lab.lab_topology import ADMIN, APP, LabError, LabSecurity, User
from mm2slo_lab.managed_process import HOST

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
    # Each start of a Connect worker's group would wait 3 s for further members (KIP-134).
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


STORE_PASSWORD = "lab-store"


@dataclass(frozen=True, slots=True)
class BrokerTlsFiles:
    """PKCS#12 keystore of the broker, and its certificate (PEM) for clients."""

    keystore: Path
    ca_file: Path


def server_properties(
    *,
    port: int,
    controller_port: int,
    log_directory: Path,
    security: LabSecurity,
    tls: BrokerTlsFiles | None,
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


def _secured(security: LabSecurity, tls: BrokerTlsFiles | None) -> dict[str, str]:
    if security is LabSecurity.PLAINTEXT:
        return {}
    mechanism = _MECHANISMS[security]
    # PLAIN has its users here, SCRAM has them in the cluster's metadata.
    is_plain = security is LabSecurity.SASL_PLAINTEXT
    users = "".join(f' user_{u.name}="{u.password}"' for u in (ADMIN, APP) if is_plain)
    return {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # The controller listener has no SASL: its only client is this process.
        "super.users": f"User:{ADMIN.name};User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "false",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        f"listener.name.client.{mechanism.lower()}.sasl.jaas.config": (
            f'{_MODULES[security]} required username="{ADMIN.name}"'
            f' password="{ADMIN.password}"{users};'
        ),
        **_tls(tls),
    }


def _tls(tls: BrokerTlsFiles | None) -> dict[str, str]:
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


_MECHANISMS = {LabSecurity.SASL_PLAINTEXT: "PLAIN", LabSecurity.SASL_SSL: "SCRAM-SHA-512"}

_MODULES = {
    LabSecurity.SASL_PLAINTEXT: "org.apache.kafka.common.security.plain.PlainLoginModule",
    LabSecurity.SASL_SSL: "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def librdkafka(
    bootstrap_servers: str, security: LabSecurity, ca_file: Path | None, user: User = ADMIN
) -> dict[str, str]:
    """Return the properties of a librdkafka client of a cluster."""
    properties = {"bootstrap.servers": bootstrap_servers, "security.protocol": security.value}
    if security is not LabSecurity.PLAINTEXT:
        properties |= {
            "sasl.mechanism": _MECHANISMS[security],
            "sasl.username": user.name,
            "sasl.password": user.password,
        }
    if security is LabSecurity.SASL_SSL:
        properties["ssl.ca.location"] = str(ca_file)
    return properties


def java(
    bootstrap_servers: str, security: LabSecurity, ca_file: Path | None, user: User = ADMIN
) -> dict[str, str]:
    """Return the properties of a Java client of a cluster."""
    properties = {"bootstrap.servers": bootstrap_servers}
    if security is not LabSecurity.PLAINTEXT:
        properties |= {
            "security.protocol": security.value,
            "sasl.mechanism": _MECHANISMS[security],
            "sasl.jaas.config": (
                f'{_MODULES[security]} required username="{user.name}" password="{user.password}";'
            ),
        }
    if security is LabSecurity.SASL_SSL:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca_file)}
    return properties


def mm2slo(
    bootstrap_servers: str, security: LabSecurity, ca_file: Path | None, user: User = ADMIN
) -> dict[str, Any]:
    """Return the cluster's entry in mm2slo.yaml."""
    entry: dict[str, Any] = {"bootstrap_servers": bootstrap_servers}
    if security is LabSecurity.PLAINTEXT:
        return entry
    entry["security"] = {
        "protocol": security.value,
        "sasl": {
            "mechanism": _MECHANISMS[security],
            "username": user.name,
            "password": user.password,
        },
    }
    if security is LabSecurity.SASL_SSL:
        entry["security"]["tls"] = {"ca_file": str(ca_file)}
    return entry


def tls_files(directory: Path) -> BrokerTlsFiles:
    """Return the paths of a broker's files."""
    return BrokerTlsFiles(directory / "keystore.p12", directory / "ca.pem")


def create(java: str, directory: Path) -> BrokerTlsFiles:
    """Create a self-signed certificate for 127.0.0.1, valid for a year.

    Raises LabError when keytool fails.
    """
    files = tls_files(directory)
    store = ("-keystore", str(files.keystore), "-storepass", STORE_PASSWORD, "-alias", "broker")
    _keytool(
        java,
        *("-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-storetype", "PKCS12"),
        *("-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1,dns:localhost"),
        *("-validity", "365", *store),
    )
    _keytool(java, "-exportcert", "-rfc", "-file", str(files.ca_file), *store)
    return files


def _keytool(java: str, *arguments: str) -> None:
    keytool = Path(java).resolve().with_name("keytool")
    result = subprocess.run(
        [str(keytool), *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    if result.returncode != 0:
        output = (result.stdout + result.stderr).strip()
        raise LabError(f"{keytool} {arguments[0]} failed: {output}")
