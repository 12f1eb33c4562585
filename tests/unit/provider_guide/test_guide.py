"""The guide for provider authors shows what stands in its example."""

from __future__ import annotations

import re

import pytest

from kafkaform.core.schema import META_ARGUMENTS, META_BLOCKS
from kafkaform.provider import contract

from .conftest import EXAMPLE, Folder

GUIDE = EXAMPLE.parents[1] / "docs" / "writing-a-provider.md"
TEXT = GUIDE.read_text(encoding="utf-8")
SUFFIXES = {"python": ".py", "toml": ".toml", "terraform": ".hcl"}
QUOTES = [
    (language, body)
    for language, body in re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    if language in SUFFIXES
]


def members(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize(("language", "body"), QUOTES, ids=[body[:40] for _, body in QUOTES])
def test_what_is_quoted_stands_in_the_example(language: str, body: str) -> None:
    """Each block of code is a piece of one of the example's files, to the letter."""
    files = EXAMPLE.rglob(f"*{SUFFIXES[language]}")
    assert any(f"\n{body}" in file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("protocol", [contract.Provider, contract.Session])
def test_every_method_is_explained(protocol: type) -> None:
    """Nothing of the contract is left out."""
    named = set(re.findall(r"`(\w+)`", TEXT))
    headings = set(re.findall(r"\w+", " ".join(re.findall(r"^### (.*)$", TEXT, re.MULTILINE))))
    assert members(protocol) - named - headings <= {"name"}


def test_what_is_said_of_attribute_names_is_all() -> None:
    """The names that no attribute may have are those that the suite refuses."""
    (said,) = re.findall(r"An attribute must not be called (.*?):", TEXT, re.DOTALL)
    assert {*re.findall(r"`(\w+)`", said)} == {*META_ARGUMENTS, *META_BLOCKS}


def test_the_demonstration_works(folder: Folder) -> None:
    """Its configuration is formatted, and applied to a store it shows no change."""
    demo = (EXAMPLE / "demo/main.kf.hcl").read_text()
    folder.write(demo)
    folder.run("fmt", "--check")
    folder.write(demo.replace("http://127.0.0.1:8765", folder.server.url))
    folder.run("apply", "-auto-approve")
    assert folder.store.links["latest"]["target"] == "notices/today"
    assert "No changes" in folder.run("plan")
