"""Spark for the audit: started with what it needs, ended without a trace."""

from mm2slo_audit.session.spark_launch import spark_session
from mm2slo_audit.session.spark_options import SparkOptions

__all__ = ["SparkOptions", "spark_session"]
