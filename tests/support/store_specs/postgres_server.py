"""A real PostgreSQL server for tests, with temporary data and a free port on loopback."""

import itertools
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg

from mm2slo_lab.managed_process import free_ports
from store_specs.back_end import BackEnd

USER, PASSWORD = "slo", "s3cr3t/w0rd"
_TIMEOUT = 60.0
_DATABASES = itertools.count(1)


@dataclass(frozen=True)
class Server:
    """A running server with a superuser that has a password."""

    port: int
    user: str = USER
    password: str = PASSWORD

    def url(self, database: str, password: str | None = None) -> str:
        secret = quote(password or self.password, safe="")
        return f"postgresql://{self.user}:{secret}@127.0.0.1:{self.port}/{database}"

    def fresh_store(self) -> BackEnd:
        """A store in a new, empty database."""
        name = f"store{next(_DATABASES)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return BackEnd(self.url(name))


@contextmanager
def running(user: str = USER, own_password: str = PASSWORD) -> Iterator[Server]:
    """Run a server; it stops with the block or with this process."""
    folder = Path(tempfile.mkdtemp(prefix="mm2slo-postgres-"))
    try:
        password = folder / "password"
        password.write_text(own_password, encoding="utf-8")
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            for each in (folder, password):
                shutil.chown(each, "postgres", "postgres")
        data = folder / "data"
        subprocess.run(
            [
                *_server_command("initdb"),
                *("--username", user, "--pwfile", str(password), "--auth", "scram-sha-256"),
                *("--pgdata", str(data), "--encoding", "UTF8", "--locale", "C", "--no-sync"),
            ],
            check=True,
            cwd=folder,
            stdout=subprocess.DEVNULL,
        )
        (port,) = free_ports(1)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *_server_command("postgres"),
                    *("-D", str(data), "-p", str(port), "-c", "listen_addresses=127.0.0.1"),
                    *("-c", "unix_socket_directories=", "-c", "fsync=off"),
                    *("-c", "shared_buffers=16MB", "-c", "max_connections=60"),
                ],
                cwd=folder,
                stdout=log,
                stderr=log,
            )
        try:
            server = Server(port, user, own_password)
            _wait_until_ready(server, process, folder / "log")
            yield server
        finally:
            process.send_signal(2)  # fast shutdown: terminates sessions
            process.wait(_TIMEOUT)
    finally:
        shutil.rmtree(folder)


def _server_command(program: str) -> list[str]:
    """The command to run a PostgreSQL program, which stops when this process does."""
    folders = [os.environ["PATH"], *map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin")))]
    found = shutil.which(program, path=os.pathsep.join(folders))
    if found is None:
        raise FileNotFoundError(f"{program} is not installed: run `make postgres`")
    command = ["setpriv", "--pdeathsig", "INT"]
    if os.geteuid() == 0:
        command += ["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    return [*command, found]


def _wait_until_ready(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline, pause = time.monotonic() + _TIMEOUT, threading.Event()
    while True:
        try:
            psycopg.connect(server.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(log.read_text(encoding="utf-8")) from None
            pause.wait(0.05)
        else:
            return
