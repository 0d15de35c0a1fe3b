"""Draws each kind of panel: data and style in, HTML or SVG of a given size out."""
