"""A headless Chromium, controlled by the Chrome DevTools Protocol.

Over a pair of pipes (`--remote-debugging-pipe`): messages are JSON, each ended by a zero byte.
https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

TIMEOUT = 60.0


@dataclass
class Tab:
    """One page. `complaints` are messages of its console, content policy and requests."""

    send_to: int
    read_from: int
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    requested: list[str] = field(default_factory=list)
    _events: list[str] = field(default_factory=list)
    _number: int = 0
    _rest: bytes = b""

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.send_to, json.dumps(message).encode() + b"\0")
        number = self._number
        while True:
            found = self._message()
            if found.get("id") == number:
                if "error" in found:
                    raise AssertionError(f"{method}: {found['error']}")
                result: dict[str, Any] = found["result"]
                return result

    def open(self, address: str) -> None:
        """Load a page and wait for it."""
        self._events.clear()
        self.call("Page.navigate", url=address)
        while "Page.loadEventFired" not in self._events:
            self._message()

    def show(self, width: int, height: int, *, dark: bool = False) -> None:
        """Emulate a screen of that size, with a light or dark theme."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page, awaited if it is asynchronous."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def picture(self, path: Path, *, whole: bool = True, **options: Any) -> bytes:
        """A screenshot of the screen, or of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=whole, **options)
        taken = base64.b64decode(found["data"])
        path.write_bytes(taken)
        return taken

    def printed(self) -> bytes:
        """The page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def press(self, key: str) -> None:
        """Press a key."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowRight": 39}
        for kind in ("keyDown", "keyUp"):
            text = {"Enter": "\r", " ": " "}.get(key, "") if kind == "keyDown" else ""
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code="Space" if key == " " else key,
                windowsVirtualKeyCode=codes[key],
                text=text,
            )

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + TIMEOUT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self.read_from], [], [], max(until - time.monotonic(), 0))
            taken = os.read(self.read_from, 1 << 16) if ready else b""
            if not taken:
                raise AssertionError(f"no message from Chromium for {TIMEOUT:.0f} s, or it ended")
            self._rest += taken
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        self._note(found.get("method", ""), found.get("params", {}))
        return found

    def _note(self, event: str, params: dict[str, Any]) -> None:
        self._events.append(event)
        if event == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event == "Network.requestWillBeSent":
            self.requested.append(params["request"]["url"])


@contextmanager
def browsing(profile: Path) -> Iterator[Tab]:
    """A new Chromium with one tab, for the duration of the block."""
    program = find_chromium()
    if program is None:
        raise AssertionError("chromium is not installed: run make chromium")
    commands, send_to = os.pipe()
    read_from, answers = os.pipe()

    def pass_descriptors() -> None:
        # The protocol's pipes are file descriptors 3 and 4.
        first, second = os.dup(commands), os.dup(answers)
        os.dup2(first, 3)
        os.dup2(second, 4)

    process = subprocess.Popen(
        [program, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        close_fds=False,
        preexec_fn=pass_descriptors,  # noqa: PLW1509 - the only way to pass descriptors 3 and 4
        start_new_session=True,
    )
    os.close(commands)
    os.close(answers)
    try:
        tab = Tab(send_to, read_from)
        targets = tab.call("Target.getTargets")["targetInfos"]
        page = next(each["targetId"] for each in targets if each["type"] == "page")
        tab.session = tab.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        yield tab
    finally:
        process.kill()
        process.wait()
        os.close(send_to)
        os.close(read_from)


_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--hide-scrollbars",
    "--no-first-run",
)
"""For local pages of ours only, also in a container and as root."""


def find_chromium() -> str | None:
    """The path of the program, None if it is not installed."""
    return next((path for name in _NAMES if (path := shutil.which(name))), None)
