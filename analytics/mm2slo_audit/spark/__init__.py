"""Spark of the audit: sessions, landing of records from Kafka, the engine's port."""
