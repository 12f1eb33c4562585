"""`make check` and what remains: the tests of a minute, and all others.

`--quick` takes the pure tests that are not marked `slow`, with a tenth of hypothesis' examples,
and waits for no disk; `--rest` takes the others, and those with hypothesis with all of their
examples. Where `--rest` follows, `--quick --no-examples` leaves these to it, so they run once.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import is_hypothesis_test, settings

from .needs import is_pure

WHOLE, QUICK = "kafkaform", "kafkaform quick"
FEWEST = 10
"""Examples of a quick test, at least."""

# How long an example takes says more about the machine than about the code; and a run says the
# same as the one before, unless somebody sets out to find more (KAFKAFORM_RANDOM=1).
_GIVEN = settings(deadline=None, derandomize="KAFKAFORM_RANDOM" not in os.environ)
settings.register_profile(WHOLE, _GIVEN)
settings.register_profile(QUICK, _GIVEN, max_examples=FEWEST)
settings.load_profile(WHOLE)


def examples(count: int) -> int:
    """How many of so many examples a test takes: all, or a tenth in a quick run."""
    quick = settings.get_current_profile_name() == QUICK
    return max(FEWEST, count // 10) if quick else count


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="pure tests with few examples")
    parser.addoption("--rest", action="store_true", help="what --quick leaves out or shortens")
    parser.addoption("--no-examples", action="store_true", help="no tests with hypothesis")


def hurry() -> None:
    """Take few examples in tests that are imported from now on, and let `fsync` return at once:
    what it is called for, and in which order, is proven all the same."""
    settings.load_profile(QUICK)
    os.fsync = _check_descriptor


def _check_descriptor(descriptor: Any) -> None:
    """An `fsync` without a disk. Raises OSError for what is not open."""
    os.fstat(descriptor)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave those of the part that is asked for, which have their markers by now."""
    if config.getoption("--quick"):
        plain = config.getoption("--no-examples")
        chosen = [item for item in items if _is_quick(item) and not (plain and _has_examples(item))]
    elif config.getoption("--rest"):
        chosen = [item for item in items if not _is_quick(item) or _has_examples(item)]
    else:
        return
    left = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in left])
    items[:] = chosen


def _is_quick(item: pytest.Item) -> bool:
    return is_pure(item) and item.get_closest_marker("slow") is None


def _has_examples(item: pytest.Item) -> bool:
    return is_hypothesis_test(getattr(item, "obj", None))
