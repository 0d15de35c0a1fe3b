import ctypes
import platform
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from mm2slo_exporter.service import exporter_service

# 80 MB of small blocks, all freed but the last: only the top of the heap is in use.
SCRIPT = """
import ctypes, pathlib
from mm2slo_exporter.service.exporter_service import return_free_memory
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
blocks = [libc.malloc(10_000) for _ in range(8_000)]
for block in blocks:
    ctypes.memset(block, 1, 10_000)
for block in blocks[:-1]:
    libc.free(block)
before = resident()
assert return_free_memory()
print(before - resident())
"""


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    exporter_service._malloc_trim.cache_clear()
    yield
    exporter_service._malloc_trim.cache_clear()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is glibc's")
def test_return_free_memory_releases_memory_below_heap_top() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) > 60_000_000


def test_return_free_memory_without_malloc_trim_is_false(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace())
    assert not exporter_service.return_free_memory()
