"""Bootstrap lists as people and consoles write them: joined, with protocols, slashes and blanks."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.errors import ConfigurationError
from kafkaform.core.value import FrozenMap, freeze
from kafkaform_kafka.connection.settings import KafkaSettings, read_settings


def read(*servers: str, **given: Any) -> KafkaSettings:
    """The settings of a block with these texts."""
    block = freeze({"bootstrap_servers": list(servers), **given})
    assert isinstance(block, FrozenMap)
    return read_settings("kafka", block, {})


@pytest.mark.parametrize(
    ("texts", "servers"),
    [
        (("a:9092,b:9092",), ("a:9092", "b:9092")),
        (("a:9092, b:9092,", " c:9092 "), ("a:9092", "b:9092", "c:9092")),
        (("a:9092,b:9092", "b:9092"), ("a:9092", "b:9092")),
        (("[::1]:9092,10.0.0.1:9092",), ("[::1]:9092", "10.0.0.1:9092")),
        (("PLAINTEXT://a:9092,plaintext://b:9092",), ("a:9092", "b:9092")),
    ],
)
def test_joined_texts_are_split(texts: tuple[str, ...], servers: tuple[str, ...]) -> None:
    """Each broker once, in the order of the list; a protocol that is ours is no part of a name."""
    assert read(*texts).servers == servers


@pytest.mark.parametrize(
    ("written", "wrong", "right"),
    [
        ("http://x:9092/", "'http://x:9092/' in bootstrap_servers is a URL", "write x:9092"),
        ("kafka://x:9092", "is a URL of another protocol", "write x:9092"),
        ("kafka://x", "is a URL of another protocol", "such as x:9092"),
        ("x:9092/", "'x:9092/' in bootstrap_servers has a path", "write x:9092"),
        ("PLAINTEXT://x:9092/", "has a path", "write x:9092"),
        ("x/", "has no port", "such as x:9092"),
        ("x", "'x' in bootstrap_servers has no port", "such as x:9092"),
        ("x:", "has no port", "such as x:9092"),
        ("x: 9092", "contains a space", "write x:9092"),
        ("x:9092 y:9092", "contains a space", '["kafka-1:9092", "kafka-2:9092"]'),
        ("::1", "is an IPv6 address without brackets", "such as [::1]:9092"),
        ("2001:db8::1:9093", "is an IPv6 address without brackets", "write [2001:db8::1]:9093"),
        ("[::1]", "has no port", "such as [::1]:9092"),
        ("x:0", "has a port that does not exist", "such as x:9092"),
        ("x:65536", "has a port that does not exist", "such as x:9092"),
        ("x:" + "9" * 5000, "has a port that does not exist", "such as x:9092"),
        ("x:9092:9093", "is not an address", "write each broker as host and port"),
        ("SASL_SSL://x:9092", "names another protocol", 'security_protocol = "SASL_SSL"'),
    ],
)
def test_a_wrong_address_is_written_right(written: str, wrong: str, right: str) -> None:
    """The advice can be pasted, also if the text stands among others."""
    for texts in ((written,), (f"a:9092, {written}",)):
        with pytest.raises(ConfigurationError) as caught:
            read(*texts)
        (fault,) = caught.value.diagnostics
        assert wrong in fault.summary and right in fault.advice
        # The advice ends the fault.
        advised = fault.advice.rpartition(" ")[2]
        if advised.startswith(("x:", "[")) and "kafka-1" not in fault.advice:
            assert read(advised).servers == (advised,)


def test_a_login_in_an_address_is_not_repeated() -> None:
    """A password has its own place."""
    with pytest.raises(ConfigurationError) as caught:
        read("ci:hunter2@x:9092", "http://ci:hunter2@x:9092")
    shown = repr([(fault.summary, fault.advice) for fault in caught.value.diagnostics])
    assert "contains a login" in shown and "hunter2" not in shown
