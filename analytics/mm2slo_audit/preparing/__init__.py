"""What can be done before the first audit: jars fetched, Spark tried, its classes archived."""

from mm2slo_audit.preparing.preparing import Prepared, prepare

__all__ = ["Prepared", "prepare"]
