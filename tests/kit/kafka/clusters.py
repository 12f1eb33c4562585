"""Brokers that nobody else uses."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import count_brokers
from kafkaform.sandbox import configuration
from kafkaform.sandbox.record import Broker

from .versions import Choice, make_options

MEMORY = "/dev/shm"
HELD = (("request.timeout.ms", "5000"),)
"""For brokers whose clients have a short operation_timeout. A broker keeps a request for so long
while it finds no controller, and an apply waits as long before it believes that nothing happened:
Kafka's own 30 s, of every request whose answer is lost."""

TOKENS = (("delegation.token.secret.key", "a key of these tests alone"),)
"""Switches on delegation tokens."""

MakeSettings = Callable[[sandbox.Sandbox, Broker], Mapping[str, str]]


@contextmanager
def own_sandbox(
    name: str,
    brokers: int = 1,
    config: tuple[tuple[str, str], ...] = (),
    choice: Choice | None = None,
    *,
    tls: bool = False,
    classpath: tuple[Path, ...] = (),
    settings: MakeSettings | None = None,
) -> Iterator[sandbox.Sandbox]:
    """Brokers that nobody else uses, ended and removed afterwards. Their data is kept in memory
    where that is possible: thousands of new logs are a matter of how fast a disk is. choice: None:
    the Kafka of this run; tls: also with a listener for TLS; classpath: jars of plugins; settings:
    what a sandbox refuses as an option, or what needs its passwords."""
    options = replace(make_options(name, brokers, config, choice), tls=tls, classpath=classpath)
    folder = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=folder) as home, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", home)
        if settings is not None:
            patch.setattr(configuration, "render_properties", _add_settings(settings))
        try:
            yield sandbox.up(options, count_brokers)
        finally:
            sandbox.down(name)


def _add_settings(settings: MakeSettings) -> Callable[[sandbox.Sandbox, Broker], str]:
    """How a sandbox renders the properties of a broker, with these at the end, where they win."""
    render = configuration.render_properties

    def render_more(box: sandbox.Sandbox, broker: Broker) -> str:
        lines = (
            f"{key}={configuration.escape_value(value)}\n"
            for key, value in settings(box, broker).items()
        )
        return render(box, broker) + "".join(lines)

    return render_more
