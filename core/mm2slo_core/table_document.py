"""Reports made of tables, as Markdown for terminals and tickets, and as a page without other files.

A table may have a drawing (SVG) above it, which pages show.
"""

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_STYLE = (
    "body{font:16px/1.4 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}"
    "table{border-collapse:collapse;max-width:100%;display:block;overflow-x:auto}"
    "th,td{border:1px solid #8888;padding:.3rem .6rem;text-align:left}"
    "td{overflow-wrap:break-word;max-width:18rem}"
    "svg{max-width:100%;height:auto;display:block;margin:.5rem 0}"
    ":root{color-scheme:light dark}"
)


@dataclass(frozen=True, slots=True)
class DocumentTable:
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    drawing: str = ""


def markdown_document(title: str, tables: Iterable[DocumentTable], notes: Iterable[str]) -> str:
    """The report as Markdown."""
    lines = [f"# {title}", ""]
    for table in tables:
        lines += [f"## {table.title}", "", _row(table.header), _row(["---"] * len(table.header))]
        lines += [*map(_row, table.rows), ""]
    lines += [f"- {each}" for each in notes]
    return "\n".join(lines).rstrip() + "\n"


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |"


def html_document(title: str, tables: Iterable[DocumentTable], notes: Iterable[str]) -> str:
    """The report as a page."""
    escaped = html.escape(title)
    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escaped}</title>",
        "<meta name=viewport content='width=device-width'>",
        f"<style>{_STYLE}</style><h1>{escaped}</h1>",
    ]
    for table in tables:
        head = "".join(f"<th scope=col>{html.escape(each)}" for each in table.header)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in row) for row in table.rows
        )
        parts.append(f"<h2>{html.escape(table.title)}</h2>{table.drawing}")
        parts.append(f"<table><tr>{head}{body}</table>")
    items = "".join(f"<li>{html.escape(each)}" for each in notes)
    return "\n".join([*parts, f"<ul>{items}</ul>" if items else ""]) + "\n"
