"""The canary process: sends on the source, stamps arrivals on the target."""
