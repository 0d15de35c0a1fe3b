"""The watermark timeline: who writes it, writing it, and reading it back."""
