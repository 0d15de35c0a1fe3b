from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mm2slo_logship.log_events import Line
from mm2slo_logship.log_files import PlainContent
from mm2slo_logship.tailed_file import MAX_LINE, LineReader


def _reader(path: Path, content: bytes) -> LineReader:
    path.write_bytes(content)
    return LineReader(PlainContent(path), 0)


def _texts(lines: list[Line]) -> list[bytes]:
    return [line.text for line in lines]


def test_reader_incomplete_line_waits_for_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = _reader(path, b"one\ntw")

    assert reader.read().lines == [(0, 4, b"one")]
    assert reader.read().lines == []
    with path.open("ab") as log:
        log.write(b"o\n")
    assert reader.read().lines == [(4, 8, b"two")]


def test_reader_final_returns_the_rest_as_a_line(tmp_path: Path) -> None:
    reader = _reader(tmp_path / "log", b"one\ntwo")

    reader.read()

    assert reader.read(final=True).lines == [(4, 7, b"two")]
    assert reader.read(final=True).lines == []


def test_reader_windows_line_ends_and_nul_bytes_are_removed(tmp_path: Path) -> None:
    reader = _reader(tmp_path / "log", b"one\r\nt\0wo\n")

    assert reader.read().lines == [(0, 5, b"one"), (5, 10, b"two")]


def test_reader_line_of_10_mb_is_cut_and_its_end_is_kept(tmp_path: Path) -> None:
    size = 10 * 1024 * 1024
    reader = _reader(tmp_path / "log", b"one\n" + b"x" * size + b"\nthree\n")

    assert _texts(reader.read().lines) == [b"one"]
    block = reader.read()
    assert block.is_cut
    assert block.lines == [(4, size + 5, b"x" * MAX_LINE)]
    assert _texts(reader.read().lines) == [b"three"]


def test_reader_long_line_without_end_is_searched_once(tmp_path: Path) -> None:
    path = tmp_path / "log"
    reader = _reader(path, b"x" * (MAX_LINE + 5))

    assert reader.read().lines == []
    with path.open("ab") as log:
        log.write(b"y\n")
    assert reader.read().lines == [(0, MAX_LINE + 7, b"x" * MAX_LINE)]


def test_reader_hole_after_truncation_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as log:
        log.seek(3 * MAX_LINE + 17)
        log.write(b'{"a": 1}\n')
    reader = LineReader(PlainContent(path), 0)

    assert _texts(reader.read().lines) == [b'{"a": 1}']


@pytest.mark.property
@given(texts=st.lists(st.binary(max_size=50).map(lambda each: each.translate(None, b"\n\r\0"))))
def test_reader_lines_cover_the_file_without_gaps(
    texts: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    reader = _reader(path, b"".join(text + b"\n" for text in texts))

    lines = reader.read().lines

    assert _texts(lines) == texts
    assert [line.start for line in lines] == [0, *(line.end for line in lines)][:-1] or not lines
    assert reader.offset == path.stat().st_size
