"""Answers any request with the bytes of standard input; prints its port."""

import socket
import sys


def main() -> None:
    content = sys.stdin.buffer.read()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            connection, _ = listening.accept()
            with connection:
                if connection.recv(65536):
                    connection.sendall(content)


if __name__ == "__main__":
    main()
