"""`audit:`, what an audit compares in a flow, and where it runs and keeps its results."""

from typing import Final

from pydantic import Field

from mm2slo_core.audit.identity import Identity
from mm2slo_core.config.durations import Duration
from mm2slo_core.config.fields import Flag, Patterns, Properties, Section, Text
from mm2slo_core.config.shares import Share
from mm2slo_core.secret import Secret

_DEFAULT_STORE: Final = Secret("sqlite:///mm2slo.db")


class IdentityConfig(Section):
    """Which parts of a record must arrive unchanged; leave out what the flow changes on purpose."""

    key: Flag = Field(default=True, description="Whether keys are compared.")
    value: Flag = Field(default=True, description="Whether values are compared.")
    headers: Flag = Field(default=True, description="Whether headers are compared, in order.")
    timestamp: Flag = Field(default=True, description="Whether timestamps are compared.")
    ignored_headers: tuple[Text, ...] = Field(
        default=(), description="Headers that the flow adds, changes or drops."
    )
    hmac_key: Secret | None = Field(
        default=None,
        description="Key of HMAC-SHA-256 fingerprints, for payloads that could be guessed.",
    )

    @property
    def identity(self) -> Identity:
        """The same for the audit itself. Holds the key in the clear."""
        return Identity(
            key=self.key,
            value=self.value,
            headers=self.headers,
            timestamp=self.timestamp,
            ignored_headers=self.ignored_headers,
            hmac_key=None if self.hmac_key is None else self.hmac_key.reveal().encode(),
        )


class FlowAuditConfig(Section):
    """What an audit of this flow looks at, and how long it waits."""

    topics: Patterns = Field(
        default=(".*",), description="Source topics to audit, of those that the flow copies."
    )
    topics_exclude: Patterns = Field(
        default=(), description="Source topics to leave out; wins over `topics`."
    )
    max_pending: Duration = Field(
        default=300.0, description="Age at which a record that did not arrive is overdue: a fault."
    )
    identity: IdentityConfig = Field(
        default_factory=IdentityConfig, description="What makes a copy the same record."
    )


class SparkConfig(Section):
    """Where the audit's Spark runs."""

    master: Text = Field(
        default="local[*]",
        description="Spark master; that of `spark-submit` is kept instead of it.",
    )
    driver_memory: Text | None = Field(
        default=None, description="Heap of a local Spark; null: a quarter of the memory, up to 4g."
    )
    jars: Text | None = Field(
        default=None,
        description="Folder of the Kafka connector's jars; null: resolved by Spark's Ivy.",
    )
    ivy_dir: Text | None = Field(
        default=None, description="Spark's Ivy cache; null: that of the user."
    )
    conf: Properties = Field(
        default_factory=dict, description="More Spark properties, passed on as they are."
    )


class AuditConfig(Section):
    """The audit: where it runs, how much it reads, where its results are kept."""

    store: Secret = Field(
        default=_DEFAULT_STORE,
        description="Results store: a SQLite or PostgreSQL URL as SQLAlchemy takes it.",
    )
    directory: Text = Field(
        default="mm2slo-audit",
        description="Folder of the record detail (Parquet); any path that Spark can write.",
    )
    sample: Share = Field(default=0.01, description="Share of the records; `100%` is a census.")
    spark: SparkConfig = Field(
        default_factory=SparkConfig, description="Where the audit's Spark runs."
    )
