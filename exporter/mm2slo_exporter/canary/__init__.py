"""The canary process: sends canaries on the source and records arrivals on the target."""
