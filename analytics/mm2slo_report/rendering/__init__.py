"""Reports as CSV, Markdown and HTML (pure functions)."""
