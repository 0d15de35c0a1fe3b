from audit_spark import pytest_collection_modifyitems, spark

__all__ = ["pytest_collection_modifyitems", "spark"]
