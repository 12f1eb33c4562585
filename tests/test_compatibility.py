"""The page about versions says what `make test-matrix` found, and leaves no version out."""

from __future__ import annotations

import re
import tomllib

import pytest

from kafkaform.sandbox import DEFAULT_VERSION, list_versions
from kafkaform.sandbox.versions import NO_ZOOKEEPER, find_newest

from .kit.kafka.subjects import SUBJECTS
from .kit.kafka.versions import Choice
from .matrix import page
from .matrix.results import COLUMNS, Result, find_column, read_results, summarize
from .matrix.runs import (
    ACCEPTANCE,
    CRASHES,
    KIPS,
    LEFT_OUT,
    LIFE_CYCLES,
    PARTS,
    list_choices,
    list_left_out,
    list_tests,
)
from .test_kip_map import TESTS, functions

(LIFE_CYCLE,) = PARTS[LIFE_CYCLES]


def test_the_page_has_every_version() -> None:
    """A line for each version that the sandbox runs, in their order; the newest of Kafka 3 and the
    newest of all also with three brokers, and the former with ZooKeeper."""
    titles = [choice.title for choice in list_choices()]
    assert [title for title in titles if "," not in title] == list(list_versions())
    last = find_newest(NO_ZOOKEEPER)
    assert [title for title in titles if "," in title] == [
        f"{last}, 3 brokers",
        f"{last}, ZooKeeper",
        f"{DEFAULT_VERSION}, 3 brokers",
    ]
    assert list(read_results()) == titles
    assert re.findall(r"^\| (\d[^|]*) \|", page.read_block(), re.MULTILINE) == titles


def test_the_page_is_what_was_found() -> None:
    """Nobody has written into the generated part by hand."""
    assert page.read_block() == page.render_block(read_results())
    assert all(set(line) <= set(COLUMNS) for line in read_results().values())


@pytest.mark.parametrize("choice", list_choices(), ids=lambda choice: choice.title)
def test_what_is_left_out_is_there(choice: Choice) -> None:
    """Each test that is left out exists, and an entry says where it counts."""
    for test in list_left_out(choice):
        file, _, name = test.removeprefix("tests/").partition("::")
        assert name.partition("[")[0] in functions(file), test
    for entry in tomllib.loads(LEFT_OUT.read_text("utf-8"))["left_out"]:
        assert entry.keys() & {"before", "zookeeper", "brokers"} and entry["reason"]


@pytest.mark.parametrize("part", PARTS)
def test_every_test_of_a_part_is_there(part: str) -> None:
    """No part is about a file that was renamed, or about nothing."""
    files = {test.partition("::")[0] for test in list_tests(part)}
    assert files and all((TESTS.parent / file).exists() for file in files)


def test_a_test_belongs_to_one_column() -> None:
    """Whatever a user manages has its own; other tests belong to their part."""
    for subject in SUBJECTS:
        assert find_column(f"{LIFE_CYCLE}::test_it[{subject.title}]") == subject.title
    assert find_column(f"{LIFE_CYCLE}::test_the_sandbox") is None
    assert find_column("tests/cluster/provider/test_conformance.py::test_x[y]") == ACCEPTANCE
    assert find_column("tests/cluster/kafka/test_kips.py::test_x") == KIPS
    assert find_column("tests/reliability/crash/test_crashes.py::test_x") == CRASHES


def test_what_becomes_of_a_test_is_told() -> None:
    """Passed, refused with the message, not there with the reason, failed with the name; and a
    version whose tests were not run says so."""
    kips = "tests/cluster/kafka/test_kips.py"
    lives = [
        {"test": f"{LIFE_CYCLE}::t[topics]", "outcome": "passed"},
        {"test": f"{LIFE_CYCLE}::t[quotas]", "outcome": "passed", "refused": "no quotas here"},
        {"test": f"{LIFE_CYCLE}::t[ACLs]", "outcome": "failed", "reason": "assert 1 == 2"},
    ]
    others = [
        {"test": f"{kips}::a", "outcome": "passed"},
        {"test": f"{kips}::b", "outcome": "skipped", "reason": "it is too old"},
        {"test": f"{kips}::c", "outcome": "failed", "reason": "assert 1 == 2"},
    ]
    found = {**summarize(lives, LIFE_CYCLES), **summarize(others, KIPS)}
    assert found["quotas"] == Result(1, "no quotas here")
    text = page.render_block({"1.0": found, "2.0": {}})
    old, new = (line.strip("| ").split(" | ") for line in text.splitlines()[2:4])
    cells = dict(zip(COLUMNS, old[1:], strict=True))
    assert (cells["topics"], cells["quotas"]) == ("passed", "refused (1)")
    assert (cells["ACLs"], cells["SCRAM users"]) == ("**failed**", "not run")
    assert cells[KIPS] == "1 passed, 1 not there, 1 **failed**"
    assert "1. no quotas here" in text
    assert "- Not there, KIPs: it is too old (1.0)." in text
    assert "- Failed: `cluster/kafka/test_kips.py::c` (1.0)." in text
    assert set(new[1:]) == {"not run"}
