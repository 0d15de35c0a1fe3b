"""Reports of a run: on the terminal, and as HTML, Markdown or JSON."""
