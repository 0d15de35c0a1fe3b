"""What can be done before the first audit: jars fetched, Spark tried, its classes archived."""

from mm2slo_audit.preparation.spark_preparation import Preparation, prepare

__all__ = ["Preparation", "prepare"]
