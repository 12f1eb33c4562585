"""kafka-python is loaded without the parts that nothing uses."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import kafkaform_kafka.session
assert not {"kafka.admin", "kafka.consumer", "kafka.producer"} & set(sys.modules)
from kafka import KafkaConsumer
import kafka
assert kafka.KafkaConsumer is KafkaConsumer and kafka.errors is sys.modules["kafka.errors"]
assert not hasattr(kafka, "nothing")
"""


def test_the_package_is_whole_for_whoever_asks() -> None:
    """A session loads neither its consumer nor its producer. Another provider in the same process
    finds them all the same."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
