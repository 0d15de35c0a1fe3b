"""Complete lines of a file, with offsets; keeps no bytes between calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from mm2slo_logship.events.parsed_event import Line

if TYPE_CHECKING:
    from mm2slo_logship.files.file_content import FileContent

MAX_LINE: Final = 256 * 1024
"""Longer lines are cut here; the rest is skipped."""


class LineBlock(NamedTuple):
    """Lines that follow each other; a cut line is alone in its block."""

    lines: list[Line]
    is_cut: bool = False


class LineReader:
    """Reads *content* from *offset*, the start of a line."""

    def __init__(self, content: FileContent, offset: int) -> None:
        self._content = content
        self._searched = 0  # up to here, the line at `offset` has no end
        self.offset = offset

    def read(self, *, final: bool = False) -> LineBlock:
        """The next complete lines, if any.

        With *final*, the rest of the file is a line even without a line end.
        """
        block = self._content.read_at(self.offset, MAX_LINE)
        # A file that was truncated while its writer kept the offset starts with zeros.
        while block and block[0] == 0 and not block.strip(b"\0"):
            self.offset += len(block)
            block = self._content.read_at(self.offset, MAX_LINE)
        length = block.rfind(b"\n") + 1
        if not length:
            if len(block) == MAX_LINE:
                return self._long_line(block, final=final)
            if not final or not block:
                return LineBlock([])
            lines = [Line(self.offset, self.offset + len(block), block)]
        else:
            lines = []
            start = self.offset
            for text in block[: length - 1].split(b"\n"):
                end = start + len(text) + 1
                lines.append(Line(start, end, text))
                start = end
        self.offset = lines[-1].end
        if b"\r" in block or b"\0" in block:
            lines = [_without_control(line) for line in lines]
        return LineBlock(lines)

    def _long_line(self, block: bytes, *, final: bool) -> LineBlock:
        position = max(self._searched, self.offset + len(block))
        while piece := self._content.read_at(position, MAX_LINE):
            found = piece.find(b"\n")
            if found >= 0:
                position += found + 1
                break
            position += len(piece)
        else:
            self._searched = position
            if not final:
                return LineBlock([])
        line = Line(self.offset, position, block)
        self.offset, self._searched = position, 0
        return LineBlock([_without_control(line)], is_cut=True)


def _without_control(line: Line) -> Line:
    return line._replace(text=line.text.replace(b"\0", b"").removesuffix(b"\r"))
