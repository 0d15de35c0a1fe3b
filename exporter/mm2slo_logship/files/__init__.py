"""Log files: discovery, identity, rotation, and reading of complete lines."""
