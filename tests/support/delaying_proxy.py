"""A proxy in front of a broker that delays all data, as a distant network does."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mm2slo_lab.managed_process import HOST


class DelayingProxy:
    """Forwards *port* to a broker's port; `round_trip` (seconds) applies to data from then on.

    Requests in flight are delayed together, not one after the other.
    """

    def __init__(self, port: int, broker: int) -> None:
        self.round_trip = 0.0
        self._port, self._broker = port, broker
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))
        self._thread.start()
        self._ready.wait()

    def close(self) -> None:
        """Close all connections."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join()
        self._loop.close()

    async def _serve(self) -> None:
        self._stopping = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._connect, HOST, self._port)
        self._ready.set()
        await self._stopping.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_broker = await asyncio.open_connection(HOST, self._broker)
        for origin, to in ((reader, to_broker[1]), (to_broker[0], writer)):
            task = asyncio.create_task(self._pass(origin, to))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pass(self, origin: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
        try:
            while data := await origin.read(65_536):
                self._loop.call_later(self.round_trip / 2, to.write, data)
        finally:
            self._loop.call_later(self.round_trip / 2, to.close)


@contextmanager
def delaying_proxy(port: int, broker: int) -> Iterator[DelayingProxy]:
    """Run a proxy until the block ends."""
    proxy = DelayingProxy(port, broker)
    try:
        yield proxy
    finally:
        proxy.close()
