"""Background readers: each reads one thing from one cluster and publishes frozen values."""
