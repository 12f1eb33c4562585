"""One real broker for the whole run, and the switches that make a test run honest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kafkaform import sandbox
from kafkaform.cli.commands.sandbox import probe


@dataclass(frozen=True)
class Broker:
    """A running sandbox: `admin` is a super user, `ci` has no rights at all."""

    bootstrap: str
    admin_password: str
    ci_password: str
    cluster_id: str
    admin_user: str = "admin"
    ci_user: str = "ci"


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """Kafka 4.3.1, started once for all tests and ended after them."""
    name = f"tests-{os.getpid()}"
    box = sandbox.up(sandbox.Options(name), probe)
    try:
        yield Broker(box.bootstrap, box.admin_password, box.ci_password, box.cluster_id)
    finally:
        sandbox.down(name)
