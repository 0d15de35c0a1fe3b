"""Properties of a broker and its clients."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mm2slo_lab import broker_properties
from mm2slo_lab.broker_properties import server_properties, tls_files
from mm2slo_lab.lab_topology import ADMIN, APP, LabSecurity

CA = Path("/lab/us/ca.pem")


def rendered(
    security: LabSecurity = LabSecurity.PLAINTEXT, overrides: Mapping[str, str] | None = None
) -> dict[str, str]:
    secured = security is LabSecurity.SASL_SSL
    return server_properties(
        port=20001,
        controller_port=20002,
        log_directory=Path("/lab/us/data"),
        security=security,
        tls=tls_files(Path("/lab/us")) if secured else None,
        overrides=overrides or {},
    )


def test_node_is_broker_and_controller() -> None:
    properties = rendered()

    assert properties["process.roles"] == "broker,controller"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:20002"
    assert properties["listeners"] == "CLIENT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002"
    assert properties["advertised.listeners"] == "CLIENT://127.0.0.1:20001"
    assert "authorizer.class.name" not in properties


def test_all_replication_factors_are_one() -> None:
    factors = {key: value for key, value in rendered().items() if "replication.factor" in key}

    assert set(factors.values()) == {"1"}
    assert len(factors) == 3


def test_broker_properties_override_defaults() -> None:
    assert rendered(overrides={"num.io.threads": "8"})["num.io.threads"] == "8"


@pytest.mark.parametrize("security", [LabSecurity.SASL_PLAINTEXT, LabSecurity.SASL_SSL])
def test_secured_broker_denies_without_acl(security: LabSecurity) -> None:
    properties = rendered(security)

    assert properties["authorizer.class.name"].endswith("StandardAuthorizer")
    assert properties["allow.everyone.if.no.acl.found"] == "false"
    assert f"User:{APP.name}" not in properties["super.users"]
    assert properties["listener.security.protocol.map"] == (
        f"CLIENT:{security},CONTROLLER:PLAINTEXT"
    )


@pytest.mark.parametrize(
    ("security", "expected"),
    [
        (LabSecurity.PLAINTEXT, {"security.protocol": "PLAINTEXT"}),
        (
            LabSecurity.SASL_PLAINTEXT,
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "app",
                "sasl.password": "app-secret",
            },
        ),
        (
            LabSecurity.SASL_SSL,
            {
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "app",
                "sasl.password": "app-secret",
                "ssl.ca.location": "/lab/us/ca.pem",
            },
        ),
    ],
)
def test_librdkafka_properties_match_listener(
    security: LabSecurity, expected: dict[str, str]
) -> None:
    found = broker_properties.librdkafka("127.0.0.1:20001", security, CA, APP)

    assert found == {"bootstrap.servers": "127.0.0.1:20001", **expected}


def test_java_properties_use_jaas() -> None:
    found = broker_properties.java("127.0.0.1:20001", LabSecurity.SASL_SSL, CA)

    assert found["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        ' username="admin" password="admin-secret";'
    )
    assert found["ssl.truststore.location"] == "/lab/us/ca.pem"


def test_user_repr_hides_password() -> None:
    assert repr(ADMIN) == "User(name='admin')"
