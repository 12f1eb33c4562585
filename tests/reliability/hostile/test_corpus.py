"""The list of hostile inputs that `python -m tests.long hostile` goes through."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from unittest.mock import Mock

from .corpus import Stage, corpus


def test_the_list_is_long(tmp_path: Path) -> None:
    """At least 400 inputs of at least 30 classes, none twice; the checks run in the long form and
    in the tests of each part."""
    found = list(corpus(Stage(Mock(), Mock(), tmp_path)))
    kinds = Counter(one.kind for one in found)
    assert len(found) >= 400 and len(kinds) >= 30, kinds
    assert min(kinds.values()) >= 4, kinds
