"""A host that takes connections, keeps all that is sent to it, and answers nothing."""

from __future__ import annotations

import socket
import threading


class Listener:
    """received: every byte that anybody sent; closed after each connection's first bytes."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(0.1)
        self.received = b""
        self.connections = 0
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def _serve(self) -> None:
        while not self._ending.is_set():
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                continue
            with connection:
                connection.settimeout(1)
                self.connections += 1
                try:
                    self.received += connection.recv(1 << 16)
                except OSError:
                    continue

    def close(self) -> None:
        self._ending.set()
        self._thread.join(5)
        self._socket.close()
