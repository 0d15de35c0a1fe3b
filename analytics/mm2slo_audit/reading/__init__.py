"""From Kafka through Spark into Parquet: hashes and offsets, never payload."""

from mm2slo_audit.reading.landing import Landed, land
from mm2slo_audit.reading.progress import ReadingProgress

__all__ = ["Landed", "ReadingProgress", "land"]
