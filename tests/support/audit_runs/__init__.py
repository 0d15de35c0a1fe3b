"""An audit run without Kafka and Spark: generated records, judged by the reference."""
