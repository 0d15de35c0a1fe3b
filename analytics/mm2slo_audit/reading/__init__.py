"""From Kafka through Spark into Parquet: hashes and offsets, never payload."""

from mm2slo_audit.reading.landing import Landed, land

__all__ = ["Landed", "land"]
