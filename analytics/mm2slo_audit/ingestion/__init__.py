"""Reads records from Kafka by Spark into Parquet: hashes and offsets, never payloads."""

from mm2slo_audit.ingestion.landed_records import Landed, land

__all__ = ["Landed", "land"]
