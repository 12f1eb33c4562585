"""A store of one's own for each test."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from textstore_systems import USERS

from kafkaform_textstore.server import Server, Store


@pytest.fixture
def server() -> Iterator[Server]:
    """A store that runs on this computer, with an administrator and a user without rights."""
    with Server(Store(USERS)) as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()
