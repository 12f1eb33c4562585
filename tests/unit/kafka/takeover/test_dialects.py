"""Plain scalars as the YAML parser of each tool reads them."""

from __future__ import annotations

import pytest

from kafkaform_kafka.takeover.documents import DIALECTS, YamlNode, read_documents
from kafkaform_kafka.takeover.fields import Unfit, read_number, read_text

GO = {
    **{"no": "false", "On": "true", "y": "true", "N": "false", "TRUE": "true", "yES": "yES"},
    **{"1.0e+9": "1000000000", "1e3": "1000", "0.5": "0.5", "1.50": "1.5", "2.0": "2"},
    **{"010": "8", "0o10": "8", "0x1F": "31", "0b11": "3", "1_000": "1000", "08": "8"},
    **{"1:30": "1:30", "-5": "-5", "+5": "5", "1.2.3": "1.2.3", ".5": "0.5", "_": "_"},
    **{"2147483648": "2147483648", "9223372036854775807": "9223372036854775807"},
}
JAVA = {
    **{"no": "false", "On": "true", "y": "y", "N": "N", "TRUE": "true", "yES": "yES"},
    **{
        "1.0e+9": "1.0E9",
        "1e3": "1000.0",
        "0.5": "0.5",
        "1.50": "1.5",
        "12345678.5": "1.23456785E7",
    },
    **{"010": "8", "0o10": "0o10", "0x1F": "31", "0b11": "3", "1_000": "1000", "08": "08"},
    **{"1:30": "1:30", "-5": "-5", "+5": "5", "1.2.3": "1.2.3", "0.0001": "1.0E-4", "_1": "_1"},
}
EXPECTED = {
    "strimzi": GO,
    "topicctl": GO,
    "jikkou": JAVA,
    "julieops": JAVA,
    "kafka-gitops": {text: text for text in (*GO, *JAVA)},
}


def parse(text: str, tool: str) -> YamlNode:
    (document,) = read_documents("x.yaml", f"a: {text}\n".encode(), tool)
    assert isinstance(document, YamlNode)
    return document.value["a"]


def test_every_tool_has_a_dialect() -> None:
    """A tool without one could not be read at all."""
    assert DIALECTS.keys() == EXPECTED.keys()


@pytest.mark.parametrize("tool", EXPECTED)
def test_texts(tool: str) -> None:
    """A config is a text; what it is depends on the parser. Quoted, it is what is written."""
    for text, expected in EXPECTED[tool].items():
        assert read_text(parse(text, tool), "a") == expected, text
        assert read_text(parse(f'"{text}"', tool), "a") == text
        assert read_text(parse(f"!!str {text}", tool), "a") == text


@pytest.mark.parametrize("tool", EXPECTED)
@pytest.mark.parametrize("text", ["9" * 5000, "0" + "7" * 5000, "1.0e+999", "0x" + "f" * 5000])
def test_numbers_that_nobody_can_use(tool: str, text: str) -> None:
    """They are refused with their place, and nothing else happens."""
    with pytest.raises(Unfit):
        read_number(parse(text, tool), "a")


@pytest.mark.parametrize("tool", EXPECTED)
def test_numbers(tool: str) -> None:
    """A number of partitions is read as a number by every tool."""
    for text, expected in (("010", 8), ("0x10", 16), ("1_000", 1000), ("12", 12)):
        assert read_number(parse(text, tool), "a") == expected
