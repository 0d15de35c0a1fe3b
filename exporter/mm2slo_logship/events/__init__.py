"""From lines of a log file to redacted events."""
