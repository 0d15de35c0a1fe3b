"""Strimzi's `KafkaMirrorMaker2` as pydantic models: v1, v1beta2 and v1alpha1.

Fields as in Strimzi's custom resource definitions, as far as they concern Kafka.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

# A name that fits into ${secret:NAME:KEY}; glob characters occur in `pattern`.
SecretText = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._*?\[\]-]+$")]
Config = Mapping[str, object] | None


class Part(BaseModel):
    """A mapping of the resource. Unknown keys are kept; `repr` shows no value."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, hide_input_in_errors=True
    )
    ignored: ClassVar[frozenset[str]] = frozenset()

    def __repr_args__(self) -> tuple[()]:
        return ()


class SecretRef(Part):
    """A secret with the names of its keys; which of them are there depends on the use."""

    secret_name: SecretText
    key: SecretText | None = None
    certificate: SecretText | None = None
    pattern: SecretText | None = None
    password: SecretText | None = None


class Tls(Part):
    trusted_certificates: tuple[SecretRef, ...] | None = None


class Authentication(Part):
    ignored = frozenset({
        "accessTokenIsJwt", "connectTimeoutSeconds", "readTimeoutSeconds", "enableMetrics",
        "httpRetries", "httpRetryPauseMs", "includeAcceptHeader", "maxTokenExpirySeconds",
        "refreshToken", "accessToken", "accessTokenLocation",
        "clientAssertion", "clientAssertionLocation", "clientAssertionType",
    })  # fmt: skip

    type: str
    username: str | None = None
    password_secret: SecretRef | None = None
    certificate_and_key: SecretRef | None = None
    client_id: str | None = None
    client_secret: SecretRef | None = None
    token_endpoint_uri: str | None = None
    grant_type: str | None = None
    scope: str | None = None
    audience: str | None = None
    sasl_extensions: Mapping[str, str] | None = None
    disable_tls_hostname_verification: bool | None = None
    tls_trusted_certificates: tuple[SecretRef, ...] | None = None
    sasl: bool | None = None
    config: Config = None


class Cluster(Part):
    """`spec.clusters[]`, `spec.mirrors[].source` or `spec.target`; the names are the target's."""

    alias: Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,100}$")]
    bootstrap_servers: str
    tls: Tls | None = None
    authentication: Authentication | None = None
    config: Config = None


class Target(Cluster):
    group_id: str | None = None
    config_storage_topic: str | None = None
    offset_storage_topic: str | None = None
    status_storage_topic: str | None = None


class ConnectorSpec(Part):
    ignored = frozenset({"version", "autoRestart", "listOffsets", "alterOffsets"})

    tasks_max: int | None = None
    pause: bool | None = None
    state: Literal["running", "paused", "stopped"] | None = None
    config: Config = None


class Mirror(Part):
    source: Cluster | None = None
    source_cluster: str | None = None
    target_cluster: str | None = None
    source_connector: ConnectorSpec | None = None
    checkpoint_connector: ConnectorSpec | None = None
    heartbeat_connector: ConnectorSpec | None = None
    topics_pattern: str | None = None
    topics_exclude_pattern: str | None = None
    topics_blacklist_pattern: str | None = None
    groups_pattern: str | None = None
    groups_exclude_pattern: str | None = None
    groups_blacklist_pattern: str | None = None


class Spec(Part):
    ignored = frozenset({
        "replicas", "image", "resources", "livenessProbe", "readinessProbe", "jvmOptions",
        "jmxOptions", "logging", "rack", "clientRackInitImage", "metricsConfig", "metrics",
        "tracing", "template", "externalConfiguration", "affinity", "tolerations",
    })  # fmt: skip

    version: str | None = None
    target: Target | None = None
    connect_cluster: str | None = None
    clusters: tuple[Cluster, ...] = ()
    mirrors: tuple[Mirror, ...] = ()


class Resource(Part):
    spec: Spec


def written_keys(part: Part) -> Iterator[tuple[tuple[str | int, ...], Part]]:
    """Yield the path of each key, except those in `config`, with the mapping that has it."""
    for name in part.model_fields_set:
        info, value = type(part).model_fields.get(name), getattr(part, name)
        key = str(info.alias) if info else name
        yield (key,), part
        for index, item in enumerate(value if isinstance(value, tuple) else (value,)):
            if isinstance(item, Part):
                prefix = (key, index) if isinstance(value, tuple) else (key,)
                yield from (((*prefix, *path), owner) for path, owner in written_keys(item))
