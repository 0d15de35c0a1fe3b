"""From Kafka through Spark into Parquet: hashes and offsets, never payload."""

from mm2slo_audit.ingestion.landed_records import Landed, land

__all__ = ["Landed", "land"]
