"""Each kind of panel, drawn: data and look in, HTML or SVG of a given size out."""
