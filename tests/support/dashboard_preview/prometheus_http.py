"""Prometheus's query API over HTTP."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from dashboard_preview.prometheus_api import QueryRejectedError


class HttpPrometheus:
    """The `Prometheus` port over the server at *url*."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, parameters: Sequence[tuple[str, str]]) -> Any:
        address = f"{self._url}/api/v1/{path}?{urlencode(parameters)}"
        try:
            with urlopen(address, timeout=60) as response:
                return json.load(response)["data"]
        except HTTPError as error:
            with error:
                raise QueryRejectedError(json.load(error)["error"]) from None
