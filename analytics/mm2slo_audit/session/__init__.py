"""Spark for the audit: started with what it needs, ended without a trace."""

from mm2slo_audit.session.options import SparkOptions
from mm2slo_audit.session.starting import spark_session

__all__ = ["SparkOptions", "spark_session"]
