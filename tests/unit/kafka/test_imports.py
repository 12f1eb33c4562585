"""Checking a configuration needs no Kafka client, and a session one of the two."""

from __future__ import annotations

import subprocess
import sys

import pytest

CLIENTS = ("kafka", "confluent_kafka")
SCRIPT = """
import sys
{body}
print(*sorted({{name.partition(".")[0] for name in sys.modules}} & set({clients!r})))
"""
SCHEMAS = """
from kafkaform.core.value import FrozenMap
from kafkaform.provider.registry import Registry
provider = Registry().load("kafka")
assert provider.types and provider.data and provider.config
assert not provider.check(FrozenMap({"bootstrap_servers": ("b:1",)}))
"""
SESSION = SCHEMAS + "import kafkaform_kafka.session"


@pytest.mark.parametrize(
    ("body", "loaded"),
    [(SCHEMAS, ""), (SESSION, "kafka")],
    ids=["schemas", "session"],
)
def test_only_a_session_loads_a_client(body: str, loaded: str) -> None:
    """Types, data sources and the check of a provider block load neither client; a session loads
    the one that sends requests."""
    script = SCRIPT.format(body=body, clients=CLIENTS)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == loaded
