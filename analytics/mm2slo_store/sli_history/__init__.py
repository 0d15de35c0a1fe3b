"""What indicators counted, minute by minute: kept by the hour, read by differences."""
