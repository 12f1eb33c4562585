"""The pages about error messages have all messages of the code, and name no others."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow("reads the whole code")
ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
CASES = ROOT / "tests/cases"
BLOCKED = re.compile(r"! blocked: (.+(?:\n {8,}(?!to do|fix: |!).+)*)")
PRINTED = re.compile(r"^Error: (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """What docs/messages.py defines."""
    return runpy.run_path(str(DOCS / "messages.py"))


@pytest.fixture(scope="module")
def texts(made: dict[str, Any]) -> frozenset[str]:
    """Every message, with `…` for what it fills in."""
    return frozenset(message.text for message in made["find_messages"]())


def test_the_page_is_what_the_code_says(made: dict[str, Any]) -> None:
    """docs/messages.md holds exactly what docs/messages.py makes today."""
    assert (DOCS / "messages.md").read_text(encoding="utf-8") == made["page"](), (
        "run docs/messages.py"
    )


def test_errors_are_found_wherever_they_are_made(texts: frozenset[str]) -> None:
    """A text is found if it is given to an error, to a subclass, to a blocker, to a diagnostic, or
    to a function that hands it on; and also if it is one of two."""
    assert len(texts) > 700
    for text in (
        "No terminal to ask for approval, so nothing was applied.",
        "it already exists, but kafkaform does not manage it",
        "cannot reach Kafka at …: …",
        "A locals block can only contain values",
        "a key must be a string",
        "a sandbox has 1 or 3 brokers, not …",
    ):
        assert text in texts


def test_each_problem_has_a_message_of_the_code(texts: frozenset[str]) -> None:
    """Each heading in code of docs/troubleshooting.md is a message word for word."""
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    named = re.findall(r"^### `(.+)`$", page, re.MULTILINE)
    assert len(named) >= 20
    assert set(named) - texts == set()


def test_what_is_printed_is_on_the_page(texts: frozenset[str]) -> None:
    """Each error that the documents and the golden texts show, and each reason for which one of the
    golden plans blocks a change, is one of the messages, or has one behind a colon or a value."""
    gaps = [".*".join(map(re.escape, text.split("…"))) for text in texts]
    patterns = [re.compile(rf"(?:^|: |^\S+ = '[^']*' ){text}", re.DOTALL) for text in gaps]
    printed = {
        error
        for path in (*DOCS.rglob("*.md"), *(ROOT / "tests").rglob("*.txt"))
        for error in PRINTED.findall(path.read_text(encoding="utf-8"))
    }
    for path in CASES.glob("*/plan.txt"):
        for reason in BLOCKED.findall(path.read_text(encoding="utf-8")):
            sentence = re.sub(r" \[[a-z0-9-]+\]$", "", " ".join(reason.split()))
            printed |= set(re.split(r"; (?=\(\d\) )", sentence))
    told = {re.sub(r"^\(\d\) ", "", text) for text in printed}
    assert len(told) > 80
    assert [text for text in told if not any(one.search(text) for one in patterns)] == []
