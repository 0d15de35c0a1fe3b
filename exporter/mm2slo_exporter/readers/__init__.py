"""Background readers; each reads one kind of data and publishes immutable values."""
