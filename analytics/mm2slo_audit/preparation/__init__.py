"""Preparation of a machine for audits: fetches jars, tests Spark, archives its classes."""

from mm2slo_audit.preparation.spark_preparation import Preparation, prepare

__all__ = ["Preparation", "prepare"]
