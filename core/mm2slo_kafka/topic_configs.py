"""Topic configurations."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ConfigSource  # type: ignore[attr-defined]  # re-exported without saying so

from mm2slo_kafka.chunks import chunks
from mm2slo_kafka.kafka_errors import kind_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable

    from confluent_kafka.admin import AdminClient
    from confluent_kafka.admin import ConfigEntry as RawEntry  # type: ignore[attr-defined]  # re-exported without saying so

    from mm2slo_kafka.client_handles import HandleFactory
    from mm2slo_kafka.kafka_errors import ErrorKind

_CHUNK = 50
"""A response holds about 35 entries of 1.5 KB per topic: a chunk needs some 3 MB of memory."""

_SOURCES = {source.value: source.name for source in ConfigSource}


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """One setting of a topic.

    `value` is None for a sensitive or unset value. `is_default` is true unless the topic
    overrides it; `source` is Kafka's config source (`DescribeConfigsResponse`).
    """

    value: str | None
    is_default: bool
    source: str


@dataclass(frozen=True, slots=True)
class ConfigReading:
    """Settings of topics; each requested topic is in exactly one of the two."""

    configs: dict[str, dict[str, ConfigEntry]]
    errors: dict[str, ErrorKind]


def read_topic_configs(
    handles: HandleFactory,
    admin: AdminClient,
    topics: Iterable[str],
    timeout: float,
    *,
    defaults_of: Container[str] | None = None,
) -> ConfigReading:
    """Settings of each topic, in chunked requests.

    A topic has about 35 settings, nearly all at their default: with *defaults_of*, only defaults
    of these names are kept. Raises KafkaOperationError when the cluster does not answer.
    """
    operation = "reading topic configurations"
    deadline = time.monotonic() + timeout
    reading = ConfigReading({}, {})
    for chunk in chunks(topics, _CHUNK):
        with handles.errors(operation):
            futures = admin.describe_configs(
                [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in chunk],
                request_timeout=max(deadline - time.monotonic(), 0.1),
            )
        for resource, future in futures.items():
            failure = future.exception()
            if failure is None:
                entries = ((sys.intern(n), _entry(e)) for n, e in future.result().items())
                reading.configs[resource.name] = {
                    name: entry
                    for name, entry in entries
                    if defaults_of is None or not entry.is_default or name in defaults_of
                }
                continue
            admin.poll(0)
            error = failure.args[0] if isinstance(failure, KafkaException) else None
            if error is None or error.code() < 0:
                raise handles.problem(failure, operation) from None
            reading.errors[resource.name] = kind_of(error)
        handles.last_error.clear()
    admin.poll(0)
    return reading


def _entry(entry: RawEntry) -> ConfigEntry:
    source = cast("int", entry.source)  # the client's type stub is wrong: it is an int
    return ConfigEntry(
        None if entry.is_sensitive else entry.value,
        source != ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
        _SOURCES.get(source, "UNKNOWN_CONFIG"),
    )
