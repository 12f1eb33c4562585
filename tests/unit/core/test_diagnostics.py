"""What a user is told when a word is not known."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import suggest

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.mark.parametrize("word", ["scram-sha-256", "SCRAM-SHA-26", "Scram-Sha-255"])
def test_the_nearest_word_is_found_whatever_its_case(word: str) -> None:
    """A word in the wrong case is nearer to itself than to any other."""
    assert suggest(word, MECHANISMS) == 'Did you mean "SCRAM-SHA-256"?'


def test_nothing_is_suggested_for_a_word_that_is_like_none() -> None:
    """A guess that would surprise is not made."""
    assert suggest("kerberos", MECHANISMS) == ""
