"""Splunk's HTTP Event Collector: envelopes, batches, requests and answers."""
