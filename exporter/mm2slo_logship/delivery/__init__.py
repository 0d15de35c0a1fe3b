"""Sending until Splunk has accepted, and moving the checkpoints then."""
