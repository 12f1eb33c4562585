"""Checking a configuration needs no Kafka client."""

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
CONTACT = SCHEMAS + "import kafkaform_kafka.connection.native"
SESSION = SCHEMAS + "import kafkaform_kafka.session"


@pytest.mark.parametrize(
    ("body", "loaded"),
    [(SCHEMAS, ""), (CONTACT, "confluent_kafka"), (SESSION, "confluent_kafka kafka")],
    ids=["schemas", "contact", "session"],
)
def test_only_a_session_loads_the_clients(body: str, loaded: str) -> None:
    """Types, data sources and the check of a provider block load neither client; a session needs
    both. The one that connects first does not need the other, which is loaded meanwhile."""
    script = SCRIPT.format(body=body, clients=CLIENTS)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == loaded
