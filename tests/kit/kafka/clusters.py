"""Brokers that nobody else uses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers

from .versions import Choice, make_options

MEMORY = "/dev/shm"
HELD = (("request.timeout.ms", "5000"),)
"""For brokers whose clients have a short operation_timeout. A broker keeps a request for so long
while it finds no controller, and an apply waits as long before it believes that nothing happened:
Kafka's own 30 s, of every request whose answer is lost."""

TOKENS = (("delegation.token.secret.key", "a key of these tests alone"),)
"""Switches on delegation tokens."""


@contextmanager
def own_sandbox(
    name: str,
    brokers: int = 1,
    config: tuple[tuple[str, str], ...] = (),
    choice: Choice | None = None,
    *,
    tls: bool = False,
) -> Iterator[sandbox.Sandbox]:
    """Brokers that nobody else uses, ended and removed afterwards. Their data is kept in memory
    where that is possible: thousands of new logs are a matter of how fast a disk is. choice: None:
    the Kafka of this run; tls: also with a listener for TLS."""
    options = replace(make_options(name, brokers, config, choice), tls=tls)
    folder = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        try:
            yield sandbox.up(options, count_brokers)
        finally:
            sandbox.down(name)
