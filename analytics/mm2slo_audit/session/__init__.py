"""Starts and stops Spark sessions for the audit."""

from mm2slo_audit.session.spark_launch import spark_session
from mm2slo_audit.session.spark_options import SparkOptions

__all__ = ["SparkOptions", "spark_session"]
