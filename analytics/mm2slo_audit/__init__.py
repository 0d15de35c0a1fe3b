"""The audit: a PySpark job that matches records of source and target by content."""
