"""A real broker for these tests, named by the environment that `sandbox env` prints."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from kafkaform_providers.kafka.session import KafkaSession

from .cluster import connect


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker with a super user `admin` and a user `ci` without rights."""

    bootstrap: str
    admin_password: str = field(repr=False)
    ci_password: str = field(repr=False)
    admin_user: str = "admin"
    ci_user: str = "ci"


@pytest.fixture(scope="session")
def broker() -> Broker:
    return Broker(
        os.environ["KAFKAFORM_SANDBOX_BOOTSTRAP"],
        os.environ["KAFKAFORM_SANDBOX_PASSWORD"],
        os.environ["KAFKAFORM_SANDBOX_CI_PASSWORD"],
    )


@pytest.fixture
def admin(broker: Broker) -> Iterator[KafkaSession]:
    """A session of the super user."""
    session = connect(broker, "admin")
    yield session
    session.close()


@pytest.fixture
def ci(broker: Broker) -> Iterator[KafkaSession]:
    """A session of the user without rights."""
    session = connect(broker, "ci")
    yield session
    session.close()


@pytest.fixture
def prefix() -> str:
    """A name that no other test uses."""
    return f"t{uuid4().hex[:10]}"
