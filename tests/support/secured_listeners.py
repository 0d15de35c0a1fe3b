"""A broker of the lab with further listeners, and certificates in the forms that Java reads."""

import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trustme
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from mm2slo_lab.broker import Broker, BrokerPorts
from mm2slo_lab.kafka_runtime import Runtime
from mm2slo_lab.lab_topology import DEFAULT_VERSION, LabEngine, LabSecurity, LabTopology
from mm2slo_lab.managed_process import HOST, free_ports

STORE_PASSWORD = "store-secret"


@dataclass(frozen=True)
class Certificates:
    """A CA, and certificates whose common names are the names of Kafka's users."""

    ca: trustme.CA = field(default_factory=trustme.CA)

    @property
    def ca_pem(self) -> str:
        return self.ca.cert_pem.bytes().decode()

    @property
    def trust_store(self) -> bytes:
        """A PKCS12 trust store with the CA."""
        entry = pkcs12.PKCS12Certificate(
            x509.load_pem_x509_certificate(self.ca_pem.encode()), b"ca"
        )
        return pkcs12.serialize_java_truststore([entry], _locked())

    def key_pem(self, user: str) -> str:
        """A PEM key store of *user*: key (PKCS#8) and certificate."""
        key, chain = self._issue(user)
        plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return f"{plain.decode()}{chain}"

    def key_store(self, user: str) -> bytes:
        """A PKCS12 key store of *user*."""
        key, chain = self._issue(user)
        own = x509.load_pem_x509_certificate(chain.encode())
        return pkcs12.serialize_key_and_certificates(user.encode(), key, own, None, _locked())

    def _issue(self, user: str) -> tuple[Any, str]:
        issued = self.ca.issue_cert(HOST, common_name=user)
        key = load_pem_private_key(issued.private_key_pem.bytes(), None)
        return key, issued.cert_chain_pems[0].bytes().decode()


@dataclass(frozen=True)
class Listener:
    """A listener beside the lab's own; *properties* without `listener.name.<name>.`."""

    name: str
    protocol: str
    properties: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=lambda: free_ports(1)[0])

    @property
    def bootstrap_servers(self) -> str:
        return f"{HOST}:{self.port}"


def tls_properties(certificates: Certificates, folder: Path, client_auth: str) -> dict[str, str]:
    """TLS of a broker's listener, with stores in *folder*."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "listener.p12").write_bytes(certificates.key_store("broker"))
    (folder / "clients.pem").write_text(certificates.ca_pem, encoding="ascii")
    return {
        "ssl.client.auth": client_auth,
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "listener.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.key.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "clients.pem"),
    }


@contextmanager
def running_broker(
    alias: str, root: Path, security: LabSecurity, listeners: Collection[Listener] = ()
) -> Iterator[Broker]:
    """Run a broker with the lab's listener of *security*, and *listeners*.

    The common name of a client certificate is the user.
    """
    ports = BrokerPorts(*free_ports(2))
    added = "".join(f",{each.name}://{each.bootstrap_servers}" for each in listeners)
    protocols = "".join(f",{each.name}:{each.protocol}" for each in listeners)
    client = f"CLIENT://{HOST}:{ports.client}"
    overrides = {
        "listeners": f"{client},CONTROLLER://{HOST}:{ports.controller}{added}",
        "advertised.listeners": client + added,
        "listener.security.protocol.map": f"CLIENT:{security},CONTROLLER:PLAINTEXT{protocols}",
        "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
    }
    for each in listeners:
        prefix = f"listener.name.{each.name.lower()}."
        overrides |= {prefix + key: value for key, value in each.properties.items()}
    topology = LabTopology(
        (alias,), (), engine=LabEngine.NONE, security=security, broker_properties=overrides
    )
    broker = Broker(alias, ports, topology, Runtime.prepare(DEFAULT_VERSION, root))
    try:
        broker.format()
        broker.start()
        yield broker
    finally:
        broker.kill()
        shutil.rmtree(root / alias, ignore_errors=True)


def admin_client(broker: Broker) -> AdminClient:
    """A client of the super user."""
    properties: dict[str, str | int | float | bool] = {**broker.librdkafka()}
    return AdminClient(properties)


def add_scram_user(broker: Broker, user: str, password: str, bits: int = 512) -> None:
    """Let *user* log in with SCRAM-SHA-*bits*."""
    how = ScramCredentialInfo(ScramMechanism[f"SCRAM_SHA_{bits}"], 4096)
    change = UserScramCredentialUpsertion(user, how, password.encode())
    admin = admin_client(broker)
    for future in admin.alter_user_scram_credentials([change]).values():
        future.result(60)


def _locked() -> BestAvailableEncryption:
    return BestAvailableEncryption(STORE_PASSWORD.encode())
