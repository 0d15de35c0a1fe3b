"""What a cluster reports of its brokers, permissions, ACLs and clock, and how brokers connect.

`check_listeners` connects step by step, so that a failure is reported with its stage.
"""

import socket
import ssl
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without saying so
    AdminClient,
    NewTopic,
)
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from mm2slo_core.kafka_permissions import (
    CheckResult,
    RequiredAccess,
    granted_by,
)
from mm2slo_kafka.cluster_client import ClusterClient
from mm2slo_kafka.cluster_metadata import kind_of_failure, operation_name
from mm2slo_kafka.kafka_errors import ErrorKind, KafkaOperationError
from mm2slo_kafka.record_producer import DeliveryResult, RecordProducer

CLOCK_TOPIC = "mm2slo.clock.internal"
_TIMEOUT = 10.0
_NEEDS_DESCRIBE = granted_by("Describe")


class ClusterInspection:
    """Requests to one cluster; *properties* are librdkafka's. Methods raise KafkaOperationError."""

    def __init__(self, alias: str, properties: Mapping[str, str]) -> None:
        self.client = ClusterClient(alias, properties)
        self._properties = properties

    def listeners(self, servers: Iterable[str]) -> list[CheckResult]:
        """Results of a connection to each of *servers*; see `check_listeners`."""
        now = datetime.now(UTC)
        return list(check_listeners(self.client.alias, servers, self._properties, now))

    def brokers(self) -> list[str]:
        """`host:port` of each broker, as advertised to clients."""
        admin = self._admin
        with self.client.handles.errors("connecting"):
            try:
                found = admin.list_topics(timeout=_TIMEOUT).brokers.values()
            finally:
                admin.poll(0)
        hosts = ((str(each.host), each.port) for each in found)
        return [f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in hosts]

    def topics(self) -> Mapping[str, int]:
        """The partition count of each topic."""
        return self.client.topics().partition_counts

    def cluster_id(self) -> str | None:
        return self.client.topics().cluster_id

    def groups(self) -> frozenset[str]:
        return frozenset(each.group for each in self.client.groups().groups)

    def answers(self, needed: Collection[RequiredAccess]) -> dict[RequiredAccess, bool]:
        """What the user may do of *needed*; absent where the cluster does not report it."""
        with self.client.handles.errors("describing authorized operations"):
            described = {kind: self._describe(kind, needed) for kind in ("topic", "group")}
        granted: dict[RequiredAccess, bool] = {}
        for access in needed:
            answer = described[access.kind][access.name]
            failure = answer.exception()
            kind = None if failure is None else kind_of_failure(failure)
            if failure is None and answer.result().authorized_operations is not None:
                allowed = map(operation_name, answer.result().authorized_operations)
                granted[access] = access.operation in set(allowed)
            elif kind is ErrorKind.AUTHORIZATION and access.operation in _NEEDS_DESCRIBE:
                granted[access] = False
            elif kind is ErrorKind.UNKNOWN_TOPIC and access.operation == "Describe":
                granted[access] = True  # only who may describe a topic learns that it is missing
        for access in set(needed) - granted.keys():
            if access.operation == "Create":
                granted[access] = self._may_create(access.name)
        configs = [
            each for each in set(needed) - granted.keys() if each.operation == "DescribeConfigs"
        ]
        errors = self.client.topic_configs([each.name for each in configs]).errors
        denied = ErrorKind.AUTHORIZATION
        return granted | {each: errors.get(each.name) is not denied for each in configs}

    def clock_offset(self) -> tuple[float, float]:
        """Seconds that the cluster's clock is ahead of this host's, and the uncertainty.

        Writes two records to `CLOCK_TOPIC`, which gets the broker's time, and creates it if needed.
        """
        config = {"message.timestamp.type": "LogAppendTime", "retention.ms": "3600000"}
        self.client.create_topic(CLOCK_TOPIC, partitions=1, config=config)
        measured = [(0.0, float("inf"))]
        with RecordProducer(self.client.handles, delivery_timeout_seconds=5.0) as producer:
            for _ in range(2):  # the first one also connects
                results: list[DeliveryResult] = []
                start = time.time()
                producer.send(CLOCK_TOPIC, value=b"", on_delivery=results.append)
                producer.flush(_TIMEOUT)  # longer than the delivery timeout
                end = time.time()
                for result in results:
                    if isinstance(result, KafkaOperationError):
                        raise result
                    middle, half = (start + end) / 2, (end - start) / 2
                    measured.append((result.timestamp_ms / 1000 - middle, half))
        return min(measured, key=lambda each: each[1])

    @property
    def _admin(self) -> AdminClient:
        return self.client.admin()

    def _describe(self, kind: str, needed: Iterable[RequiredAccess]) -> dict[str, Future[Any]]:
        names = sorted({each.name for each in needed if each.kind == kind})
        options: Any = {"include_authorized_operations": True, "request_timeout": _TIMEOUT}
        if not names:
            return {}
        if kind == "topic":
            return self._admin.describe_topics(TopicCollection(names), **options)
        return self._admin.describe_consumer_groups(names, **options)

    def _may_create(self, topic: str) -> bool:
        """Whether the user may create *topic*, by a request that creates nothing."""
        with self.client.handles.errors("validating the creation of a topic"):
            new = NewTopic(topic, num_partitions=1, replication_factor=-1)
            answer = self._admin.create_topics([new], validate_only=True, request_timeout=_TIMEOUT)
        failure = answer[topic].exception()
        return failure is None or kind_of_failure(failure) is not ErrorKind.AUTHORIZATION


_CONNECT_SECONDS = 5.0
_RENEW_DAYS = 30

_REMEDIES = {
    "name-resolution": "correct bootstrap_servers, or advertised.listeners of the broker",
    "connection": "check that a broker listens there, and firewalls in between",
    "tls": "check that this listener uses TLS, and the client certificates it requires",
}
_OTHER_NAME = "connect by a name in the broker's certificate, or add this name to it"

# Codes of OpenSSL's X509_verify_cert: expired, wrong host name, wrong IP address.
_VERIFY_REMEDIES = {10: "renew the broker's certificate", 62: _OTHER_NAME, 64: _OTHER_NAME}
_UNTRUSTED = "set tls.ca_file to the CA that issued the broker's certificate"


def check_listeners(
    alias: str, servers: Iterable[str], properties: Mapping[str, str], now: datetime
) -> Iterator[CheckResult]:
    """A result for the client certificate, if any, and one for each of *servers* (`host:port`).

    *properties* are librdkafka's. Expiry covers the broker's certificate, and its issuers as far as
    they are in the configured CA file.
    """
    context, authorities = None, []
    if properties.get("security.protocol", "").upper().endswith("SSL"):
        try:
            authorities, client = (
                _certificates(properties, name) for name in ("ca", "certificate")
            )
            context = _tls_context(properties, authorities)
        except (OSError, ValueError) as error:
            finding = f"the configured certificates or key cannot be used: {error}"
            yield CheckResult(alias, "tls", "fix", finding, "correct security.tls of this cluster")
            return
        if client:
            yield _expiry(alias, "client certificate", client, now)
    for server in servers:
        yield _check_listener(alias, server, context, authorities, now)


def _check_listener(
    alias: str,
    server: str,
    context: ssl.SSLContext | None,
    authorities: list[x509.Certificate],
    now: datetime,
) -> CheckResult:
    host, _, port = server.rpartition(":")
    host, stage = host.strip("[]"), "connection"
    try:
        with socket.create_connection((host, int(port)), _CONNECT_SECONDS) as connection:
            if context is None:
                return CheckResult(alias, stage, "ok", f"{server} accepts connections")
            stage = "tls"
            with context.wrap_socket(connection, server_hostname=host) as tls:
                chain = [x509.load_der_x509_certificate(tls.getpeercert(binary_form=True) or b"")]
    except OSError as error:
        stage = "name-resolution" if isinstance(error, socket.gaierror) else stage
        reason, remedy = error.strerror or str(error), _REMEDIES[stage]
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"certificate refused, {error.verify_message}"
            remedy = _VERIFY_REMEDIES.get(error.verify_code, _UNTRUSTED)
        return CheckResult(alias, stage, "fix", f"{server}: {stage} failed: {reason}", remedy)
    while issuers := [a for a in authorities if a.subject == chain[-1].issuer and a not in chain]:
        chain.append(issuers[0])
    return _expiry(alias, f"{server}: certificate chain", chain, now)


def _expiry(
    alias: str, what: str, certificates: list[x509.Certificate], now: datetime
) -> CheckResult:
    first = min(certificates, key=lambda each: each.not_valid_after_utc)
    end = first.not_valid_after_utc
    finding = f"{what} is valid until {end:%Y-%m-%d} ({(end - now).days} days)"
    if (end - now).days < _RENEW_DAYS:
        remedy = f"renew {first.subject.rfc4514_string()} before that day"
        return CheckResult(alias, "certificate-expiry", "fix", finding, remedy)
    return CheckResult(alias, "certificate-expiry", "ok", finding)


def _tls_context(
    properties: Mapping[str, str], authorities: list[x509.Certificate]
) -> ssl.SSLContext:
    """As librdkafka would connect, with its defaults."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    identification = properties.get("ssl.endpoint.identification.algorithm")
    context.check_hostname = identification != "none"
    if authorities:
        encoded = b"".join(each.public_bytes(Encoding.DER) for each in authorities)
        context.load_verify_locations(cadata=encoded)
    else:
        context.load_default_certs()
    if certificate := _pem(properties, "certificate"):
        # Without a password, OpenSSL would ask for that of an encrypted key on the terminal.
        password = properties.get("ssl.key.password", "")
        with tempfile.NamedTemporaryFile() as both:
            both.write(certificate + b"\n" + _pem(properties, "key"))
            both.flush()
            context.load_cert_chain(both.name, password=password)
    return context


def _certificates(properties: Mapping[str, str], name: str) -> list[x509.Certificate]:
    pem = _pem(properties, name)
    return x509.load_pem_x509_certificates(pem) if pem else []


def _pem(properties: Mapping[str, str], name: str) -> bytes:
    """The content of librdkafka's `ssl.<name>.pem` or of the file `ssl.<name>.location`."""
    if path := properties.get(f"ssl.{name}.location"):
        return Path(path).read_bytes()
    return properties.get(f"ssl.{name}.pem", "").encode()
