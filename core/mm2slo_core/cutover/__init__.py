"""Whether consumers and producers can move to the target now."""
