"""Shared values and pure functions of mm2slo: no Kafka, no HTTP, no files."""
