"""Ships log files to Splunk's HTTP Event Collector; the log file is the queue.

`files` reads complete lines, `events` makes redacted events of them, `hec` speaks the protocol,
`delivery` sends until Splunk has accepted, and moves the checkpoints.
"""
