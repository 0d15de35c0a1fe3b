"""Measuring what replication can do: schedule, statistics, and the report."""
