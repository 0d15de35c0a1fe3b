"""The figures of docs/accuracy.md."""
