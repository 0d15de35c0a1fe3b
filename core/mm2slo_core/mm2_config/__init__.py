"""MirrorMaker 2's own configuration: readers of its forms, and what can be derived from them."""
