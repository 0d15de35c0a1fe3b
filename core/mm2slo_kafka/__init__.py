"""The Kafka edge: the only importer of confluent-kafka."""
