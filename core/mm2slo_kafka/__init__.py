"""Kafka clients; the only importer of confluent-kafka."""
