"""The audit: a PySpark job that matches the records of both sides by content."""
