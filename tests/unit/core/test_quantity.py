"""Times and sizes as people say them, never rounded behind their back."""

from __future__ import annotations

from decimal import Decimal

import pytest

from kafkaform.core.text import (
    SCALES,
    parse_amount,
    render_amount,
    render_quantity,
    render_with_exact,
)


@pytest.mark.parametrize(
    ("value", "unit", "amount"),
    [
        ("2592000000", "ms", "30 d"),
        (1000, "ms", "1 s"),
        ("1", "ms", "1 ms"),
        ("129600000", "ms", "1.5 d"),
        ("3600001", "ms", "3600001 ms"),
        (86400, "s", "1 d"),
        ("10485760", "bytes", "10 MiB"),
        ("1048588", "bytes", "1048588 B"),
        ("1", "bytes", "1 B"),
        (Decimal(1048576), "bytes/s", "1 MiB/s"),
        ("25", "percent", "25 %"),
        ("-1", "ms", "no limit"),
        ("9223372036854775807", "bytes", "no limit"),
        ("0", "ms", ""),
        ("-2", "ms", ""),
        ("soon", "ms", ""),
        (True, "ms", ""),
        (None, "bytes", ""),
        ("NaN", "ms", ""),
        ("5", "", ""),
    ],
)
def test_an_amount_is_exact_or_not_given(value: object, unit: str, amount: str) -> None:
    """The largest unit that needs at most two decimals; nothing where there is no amount."""
    assert render_quantity(value, unit) == amount


def test_the_exact_value_stands_beside_it() -> None:
    """What is typed into a configuration can be read off the screen."""
    assert render_with_exact("2592000000", "ms") == "30 d (2592000000)"
    assert render_with_exact("compact", "") == "compact"
    assert render_with_exact("5", "ms") == "5 ms"
    assert render_with_exact("1048588", "bytes") == "1048588 B"


@pytest.mark.parametrize("unit", sorted(SCALES))
def test_every_shown_amount_can_be_computed_back(unit: str) -> None:
    """The amount times its unit is the value again."""
    for value in (*range(1, 3000), 86_400_000, 2**30, 1536, 10**12):
        amount = render_quantity(value, unit)
        number, _, symbol = amount.partition(" ")
        factor = dict(SCALES[unit])[symbol]
        assert Decimal(number) * factor == value


def test_measured_figures_are_rounded() -> None:
    """A size that was measured is not typed back, so two digits are enough."""
    assert render_amount(147_762, "bytes") == "144.3 KiB"
    assert render_amount(0, "bytes") == "0 B"


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("7d", "ms", 604_800_000),
        ("1d12h", "ms", 129_600_000),
        ("0.5s", "ms", 500),
        ("forever", "ms", -1),
        ("90m", "s", 5400),
        ("1KiB", "bytes", 1024),
        ("500MB", "bytes", 500_000_000),
        ("1KiB/s", "bytes/s", 1024),
        ("1MiB", "bytes/s", 1_048_576),
        ("4096", "bytes", 4096),
    ],
)
def test_an_amount_is_read(text: str, unit: str, number: int) -> None:
    """Of the words that configurations and commands take."""
    assert parse_amount(text, unit) == number


@pytest.mark.parametrize(
    ("text", "unit"), [("7x", "ms"), ("", "ms"), ("1KiB", "ms"), ("7d", "bytes"), ("0.5ms", "ms")]
)
def test_what_is_no_amount_of_the_unit_is_refused(text: str, unit: str) -> None:
    """With an example of one that is."""
    with pytest.raises(ValueError, match="such as"):
        parse_amount(text, unit)
