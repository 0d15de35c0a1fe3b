"""A TCP proxy that delivers what it reads later: a long way between two clusters.

Run as a file: `python delay_proxy.py LISTEN_PORT TARGET_PORT ROUND_TRIP_MS`, on the loopback
address. Each direction takes half of the round trip. Bytes are delayed and not slowed down: the
way is long and wide, as with large windows.
"""

import asyncio
import sys
from contextlib import suppress

_HOST = "127.0.0.1"
_CHUNK = 1 << 18


async def deliver_later(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float
) -> None:
    """Write what *reader* gives, *delay* seconds after it was read, until its end."""
    loop = asyncio.get_running_loop()
    under_way: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

    async def read() -> None:
        data = b"-"
        while data:
            try:
                data = await reader.read(_CHUNK)
            except OSError:
                data = b""
            under_way.put_nowait((loop.time() + delay, data))

    reading = asyncio.create_task(read())
    with suppress(OSError):
        while True:
            due, data = await under_way.get()
            if (left := due - loop.time()) > 0:
                await asyncio.sleep(left)
            if not data:
                break
            writer.write(data)
            await writer.drain()
    reading.cancel()
    writer.close()


async def serve(port: int, target: int, round_trip_ms: float) -> None:
    """Accept connections until the process ends."""

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(_HOST, target, limit=_CHUNK)
        except OSError:
            writer.close()
            return
        delay = round_trip_ms / 2000
        await asyncio.gather(
            deliver_later(reader, far_writer, delay), deliver_later(far_reader, writer, delay)
        )

    server = await asyncio.start_server(connect, _HOST, port, limit=_CHUNK)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
