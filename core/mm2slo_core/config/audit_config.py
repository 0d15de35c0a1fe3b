"""`audit:`, what an audit compares, where it runs and where it stores its results."""

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from mm2slo_core.audit.conclusion import MAX_DUPLICATE_RATIO
from mm2slo_core.audit.record_identity import HEADER, Identity
from mm2slo_core.config.durations import Duration
from mm2slo_core.config.field_types import Flag, Patterns, Properties, Section, Text
from mm2slo_core.config.invalid_value import InvalidValueError
from mm2slo_core.config.shares import Share
from mm2slo_core.secret import Secret

_DEFAULT_STORE: Final = Secret("sqlite:///mm2slo.db")


def _masked_part(value: str) -> str:
    if value not in {"key", "value"} and (not value.startswith(HEADER) or value == HEADER):
        raise InvalidValueError(
            "is not a part of a record", expected="key, value, or header: and a name"
        )
    return value


MaskedPart = Annotated[Text, AfterValidator(_masked_part)]


class IdentityConfig(Section):
    """The parts of a record that must arrive unchanged; disable what the flow changes."""

    key: Flag = True
    """Whether keys are compared."""
    value: Flag = True
    """Whether values are compared."""
    headers: Flag = True
    """Whether headers are compared, in order."""
    timestamp: Flag = True
    """Whether timestamps are compared."""
    ignored_headers: tuple[Text, ...] = ()
    """Headers that the flow adds, changes or removes."""
    must_change: tuple[MaskedPart, ...] = ()
    """Masked parts (`key`, `value`, `header:NAME`), not compared; an unchanged one is a fault."""
    hmac_key: Secret | None = None
    """Key for HMAC-SHA-256 fingerprints, for payloads that could be guessed."""

    @property
    def identity(self) -> Identity:
        """The identity for the audit, with the key in plain text."""
        masked = {part.removeprefix(HEADER) for part in self.must_change if part.startswith(HEADER)}
        return Identity(
            key=self.key and "key" not in self.must_change,
            value=self.value and "value" not in self.must_change,
            headers=self.headers,
            timestamp=self.timestamp,
            ignored_headers=tuple(sorted({*self.ignored_headers, *masked})),
            must_change=self.must_change,
            hmac_key=None if self.hmac_key is None else self.hmac_key.reveal().encode(),
        )


class FlowAuditConfig(Section):
    """What an audit of this flow compares."""

    topics: Patterns = (".*",)
    """Source topics to audit, of those that the flow replicates."""
    topics_exclude: Patterns = ()
    """Source topics not to audit; takes precedence over `topics`."""
    max_pending: Duration = 300.0
    """Age from which an unreplicated record is overdue, which is a fault."""
    identity: IdentityConfig = IdentityConfig()
    """What identifies the copy of a record."""


class SparkConfig(Section):
    """The Spark session of the audit."""

    master: Text = "local[*]"
    """Spark master; `spark-submit` takes precedence."""
    driver_memory: Text | None = None
    """Heap of a local Spark; null: 1g for fewer than 10 million records, else a
    quarter of the memory, at most 4g."""
    jars: Text | None = None
    """Folder with the jars of the Kafka connector; null: resolved by Ivy."""
    ivy_dir: Text | None = None
    """Ivy cache; null: the cache of the user."""
    conf: Properties = Field(default_factory=dict)
    """Additional Spark properties, passed through unchanged."""


class AuditConfig(Section):
    """The audit: where it runs, what it reads, and where it stores its results."""

    store: Secret = _DEFAULT_STORE
    """Results store: an SQLAlchemy URL for SQLite or PostgreSQL."""
    directory: Text = "mm2slo-audit"
    """Folder for record detail (Parquet); any path that Spark can write."""
    sample: Share = 0.01
    """Share of the records to audit; `100%` is a census."""
    max_duplicate_ratio: Share = MAX_DUPLICATE_RATIO
    """Share of a topic's replicated records that were copied again, above which the verdict is
    `duplicated`."""
    spark: SparkConfig = SparkConfig()
    """The Spark session of the audit."""
