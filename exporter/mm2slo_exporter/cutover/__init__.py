"""What a cutover depends on: watched over rounds, and read while clients ask."""
