"""What the client libraries log, at whatever level somebody wishes, is seen by nobody."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator

import pytest

from kafkaform import sandbox
from kafkaform.core.errors import ConnectError
from kafkaform_kafka.connection.settings import LIBRDKAFKA_LOGGER, fence_logs

from ...kit.canaries import CANARIES, hits
from ...kit.kafka.sessions import connect

NAMES = ("kafka", "kafka.net.sasl", "kafka.net.connection", LIBRDKAFKA_LOGGER)
FEW = 2
"""How many of the canaries a short test logs in with; `KAFKAFORM_CANARIES` says another number."""


@pytest.fixture
def loud() -> Iterator[io.StringIO]:
    """Everything is logged from DEBUG on, and every logger of the clients has its own handler.
    What a Spark session of the same process logs is left out: it ends objects at any time."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.addFilter(lambda record: not record.name.startswith("py4j."))
    loggers = [logging.getLogger(name) for name in ("", *NAMES)]
    before = [(one, one.level, one.propagate) for one in loggers]
    for one in loggers:
        one.setLevel(logging.DEBUG)
        one.addHandler(handler)
    yield written
    for one, level, propagate in before:
        one.removeHandler(handler)
        one.setLevel(level)
        one.propagate = propagate


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_refused_login_at_debug_level(
    broker: sandbox.Sandbox,
    loud: io.StringIO,
    capfd: pytest.CaptureFixture[str],
    mechanism: str,
) -> None:
    """Each canary as a wrong password: nothing in the error, on the screen or in a log."""
    many = int(os.environ.get("KAFKAFORM_CANARIES", FEW))
    for secret in list(CANARIES.values())[-many:]:
        with pytest.raises(ConnectError) as refused:
            connect(broker, "admin", password=secret, mechanism=mechanism)
        said = f"{refused.value.message} {refused.value.advice} {refused.value.diagnostics}"
        places = {"error": said, "log": loud.getvalue(), "screen": "".join(capfd.readouterr())}
        assert hits(secret, {place: text.encode() for place, text in places.items()}) == []
    assert loud.getvalue() == ""


def test_a_good_login_at_debug_level(
    broker: sandbox.Sandbox, loud: io.StringIO, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither while connecting nor while asking is anything logged."""
    connect(broker, "admin").close()
    assert loud.getvalue() == "" and "".join(capfd.readouterr()) == ""


def test_every_logger_of_theirs_is_fenced(loud: io.StringIO) -> None:
    """Also one that somebody has turned on by its own name; all others stay as they are."""
    ours = logging.getLogger("kafkaform.ours")
    logging.getLogger("kafka.net.sasl").setLevel(logging.DEBUG)
    fence_logs()
    for name in NAMES:
        logging.getLogger(name).critical("password")
    assert loud.getvalue() == ""
    ours.warning("of ours")
    assert loud.getvalue() == "of ours\n"
