"""What a run says: on the terminal, and as HTML, Markdown or JSON."""
