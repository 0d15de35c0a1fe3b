"""Client properties for the lab's listeners: librdkafka, Java, mm2slo.yaml (pure)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mm2slo_lab.lab_topology import ADMIN, Security, User

if TYPE_CHECKING:
    from pathlib import Path

_MECHANISMS = {Security.SASL_PLAINTEXT: "PLAIN", Security.SASL_SSL: "SCRAM-SHA-512"}
_MODULES = {
    Security.SASL_PLAINTEXT: "org.apache.kafka.common.security.plain.PlainLoginModule",
    Security.SASL_SSL: "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def librdkafka(
    bootstrap_servers: str, security: Security, ca_file: Path | None, user: User = ADMIN
) -> dict[str, str]:
    """Return the properties of a librdkafka client of a cluster."""
    properties = {"bootstrap.servers": bootstrap_servers, "security.protocol": security.value}
    if security is not Security.PLAINTEXT:
        properties |= {
            "sasl.mechanism": _MECHANISMS[security],
            "sasl.username": user.name,
            "sasl.password": user.password,
        }
    if security is Security.SASL_SSL:
        properties["ssl.ca.location"] = str(ca_file)
    return properties


def java(
    bootstrap_servers: str, security: Security, ca_file: Path | None, user: User = ADMIN
) -> dict[str, str]:
    """Return the properties of a Java client of a cluster."""
    properties = {"bootstrap.servers": bootstrap_servers}
    if security is not Security.PLAINTEXT:
        properties |= {
            "security.protocol": security.value,
            "sasl.mechanism": _MECHANISMS[security],
            "sasl.jaas.config": (
                f'{_MODULES[security]} required username="{user.name}" password="{user.password}";'
            ),
        }
    if security is Security.SASL_SSL:
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca_file)}
    return properties


def mm2slo(
    bootstrap_servers: str, security: Security, ca_file: Path | None, user: User = ADMIN
) -> dict[str, Any]:
    """Return the cluster's entry in mm2slo.yaml."""
    entry: dict[str, Any] = {"bootstrap_servers": bootstrap_servers}
    if security is Security.PLAINTEXT:
        return entry
    entry["security"] = {
        "protocol": security.value,
        "sasl": {
            "mechanism": _MECHANISMS[security],
            "username": user.name,
            "password": user.password,
        },
    }
    if security is Security.SASL_SSL:
        entry["security"]["tls"] = {"ca_file": str(ca_file)}
    return entry
