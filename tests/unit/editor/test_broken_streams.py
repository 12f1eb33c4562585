"""Streams that no editor writes: the server ends with an error, and allocates nothing for them."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest

STREAMS = {
    "a length of a terabyte": b"Content-Length: 1000000000000\r\n\r\n{}",
    "a length without end": b"Content-Length: " + b"9" * 4000 + b"\r\n\r\n{}",
    "a length in small letters": b"content-length:1000000000000\r\n\r\n{}",
    "a header without end": b"\0" * 100_000,
    "a second message": b"Content-Length: 2\r\n\r\n{}Content-Length: 1000000000000\r\n\r\n",
}


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@pytest.mark.parametrize("stream", STREAMS)
def test_what_is_announced_is_not_allocated(stream: str, tmp_path: Path) -> None:
    """One line says what is wrong, with exit code 1 and no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "kafkaform", "lsp"],
        input=STREAMS[stream],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=60,
        preexec_fn=limit_memory,
    )
    said = done.stderr.decode()
    assert done.returncode == 1
    assert "the editor announces a message of more than 67,108,864 bytes" in said
    assert "Traceback" not in said and "bug" not in said
