"""The exporter's web server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

from mm2slo_core.config import Listen
from mm2slo_exporter.web.access import OPEN
from mm2slo_exporter.web.connection import Limits
from mm2slo_exporter.web.listener import Listener

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from mm2slo_exporter.web.access import Access, WebConfigFile
    from mm2slo_exporter.web.site import Site


class ExporterServer:
    """Serves *site* at *listen* from its own threads; used as a context manager or by start/close.

    The port is bound at once, so a port in use is a UserError here and not later.
    """

    def __init__(
        self,
        listen: Listen,
        site: Site,
        web_config: WebConfigFile | None = None,
        *,
        limits: Limits = Limits(),  # noqa: B008  a frozen value
    ) -> None:
        self._web_config = web_config
        self._server = Listener(listen, site, self._access, limits)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="web", kwargs={"poll_interval": 0.05}
        )

    def _access(self) -> Access:
        return self._web_config.current() if self._web_config is not None else OPEN

    @property
    def address(self) -> Listen:
        """Where it listens; the port is the real one when 0 was asked for."""
        host, port = self._server.server_address[:2]
        return Listen(cast("str", host), int(port))

    @property
    def url(self) -> str:
        """The address as a link that works on this machine."""
        host, port = self.address.host, self.address.port
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  compared
        return f"{'https' if self._access().tls else 'http'}://{Listen(host, port)}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop: no new connection, open ones are cut, all threads ended."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        self._server.cut_connections()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
