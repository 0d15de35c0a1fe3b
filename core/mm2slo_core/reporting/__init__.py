"""Reports on objectives, as pure functions of counted events."""
