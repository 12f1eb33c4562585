"""Sessions on the run's broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from kafkaform_kafka.session import KafkaSession

from .logins import Login
from .sessions import connect


@pytest.fixture
def admin(broker: Any) -> Iterator[KafkaSession]:
    """A session of the super user."""
    session = connect(broker, "admin")
    yield session
    session.close()


@pytest.fixture
def ci(broker: Any, stranger: Login) -> Iterator[KafkaSession]:
    """A session of this test's user without rights."""
    session = connect(broker, stranger)
    yield session
    session.close()


@pytest.fixture
def prefix() -> str:
    """A name that no other test uses."""
    return f"t{uuid4().hex[:10]}"
