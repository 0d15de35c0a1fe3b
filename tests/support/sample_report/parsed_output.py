"""Parsers for rendered reports, independent of the product."""

import re
from html.parser import HTMLParser
from typing import NamedTuple

VOID = frozenset({"meta", "link", "input", "br", "hr", "img"})


class Data(NamedTuple):
    """A `data` element: its value attribute and its text."""

    value: str
    text: str


class Element(NamedTuple):
    """A tag with its attributes."""

    tag: str
    attributes: dict[str, str]


class Document(HTMLParser):
    """Elements, texts and markup errors of an HTML document."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.faults: list[str] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self._row: str | None = None
        self._data: tuple[str, str] | None = None
        self.rows: dict[str, dict[str, Data]] = {}
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element starts."""
        found = {name: value or "" for name, value in attrs}
        if len(found) < len(attrs):
            self.faults.append(f"<{tag}> has an attribute twice")
        self.elements.append(Element(tag, found))
        if tag not in VOID:
            self._open.append(tag)
        if "data-slo" in found:
            self._row = found["data-slo"]
            self.rows[self._row] = {}
        if tag == "data":
            self._data = (found["data-field"], found["value"])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """`<path/>`."""
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """An element ends."""
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self._open[-1:]}")
        else:
            self._open.pop()
        if tag == "tr":
            self._row = None

    def handle_data(self, data: str) -> None:
        """Text."""
        if "style" not in self._open:
            self.texts.append(data)
        if self._data is not None:
            if self._row is not None:
                self.rows[self._row][self._data[0]] = Data(self._data[1], data)
            self._data = None

    @property
    def text(self) -> str:
        """All visible text."""
        return " ".join(" ".join(self.texts).split())


def data_of_rows(html: str) -> dict[str, dict[str, Data]]:
    """The `data` elements of each objective's row, by id and field."""
    return Document(html).rows


def cells(markdown: str) -> list[list[str]]:
    """The unescaped cells of the first table, without the separator row."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    end = next(
        (place for place in range(2, len(lines)) if set(lines[place]) <= set("|- ")), len(lines) + 1
    )
    return [
        [re.sub(r"\\(.)", r"\1", cell.strip()) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for place, line in enumerate(lines[: end - 1])
        if place != 1
    ]
