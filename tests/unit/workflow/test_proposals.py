"""Override files that proposals write: they change the blocks that they should, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.core.address import parse_address
from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Declared
from kafkaform.core.value import FrozenMap
from kafkaform.workflow.configuration.evaluation import (
    Configuration,
    Inputs,
    read_configuration,
)
from kafkaform.workflow.transfer.proposals import (
    choose_override_file,
    render_overrides,
    save_overrides,
)

MAIN = """\
provider "kafka" {
  bootstrap_servers = ["b:1"]
}

resource "kafka_topic" "orders" {
  name               = "orders"
  partitions         = 2
  replication_factor = 2
}

resource "kafka_topic" "shop" {
  for_each           = { a = 1, "b c" = 2, "${"$"}{d}" = 3 }
  name               = "shop.${each.value}"
  partitions         = each.value
  replication_factor = 1
}

resource "kafka_topic" "numbered" {
  count      = 12
  name       = "numbered-${count.index}"
  partitions = 1
}
"""
MOVED = FrozenMap(partitions=None, replication_factor=None, replica_assignment=((1, 2), (2, 3)))


def read(folder: Path) -> Configuration:
    return read_configuration(folder, Inputs(environment={}, variables={}))


def declared(folder: Path) -> dict[str, Declared]:
    desired = read(folder).evaluate().desired
    assert not desired.diagnostics, desired.diagnostics
    return {str(item.address): item for item in desired.declared}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.kf.hcl").write_text(MAIN, "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "address",
    [
        "kafka_topic.orders",
        'kafka_topic.shop["b c"]',
        'kafka_topic.shop["${d}"]',
        "kafka_topic.numbered[10]",
    ],
)
def test_one_object_is_overridden(folder: Path, address: str) -> None:
    """It has the arguments that were proposed; every other object is as before."""
    before = declared(folder)
    save_overrides(
        folder / "x_override.kf.hcl", {parse_address(address): MOVED}, tuple(before.values())
    )
    after = declared(folder)
    assert after[address].attributes == before[address].attributes.with_items(dict(MOVED))
    assert {k: v.attributes for k, v in after.items() if k != address} == {
        k: v.attributes for k, v in before.items() if k != address
    }


def test_the_text_is_what_somebody_would_write(folder: Path) -> None:
    """Formatted, sorted, and without a word about objects that stay."""
    everything = declared(folder)
    text = render_overrides(
        {
            parse_address("kafka_topic.orders"): MOVED,
            parse_address('kafka_topic.shop["a"]'): MOVED.with_items(
                {"replica_assignment": ((3,),)}
            ),
        },
        tuple(everything.values()),
    )
    assert (
        text
        == """\
# Proposed by `kafkaform propose`. The next proposal replaces this file.
# It overrides arguments of blocks that other files declare.

resource "kafka_topic" "orders" {
  partitions         = null
  replica_assignment = [[1, 2], [2, 3]]
  replication_factor = null
}

resource "kafka_topic" "shop" {
  partitions = {
    "$${d}" = 3
    "a"     = null
    "b c"   = 2
  }[each.key]
  replica_assignment = {
    "$${d}" = null
    "a"     = [[3]]
    "b c"   = null
  }[each.key]
  replication_factor = {
    "$${d}" = 1
    "a"     = null
    "b c"   = 1
  }[each.key]
}
"""
    )


def test_a_proposal_replaces_the_one_before_it(folder: Path) -> None:
    """A file that somebody wrote by hand is kept."""
    place = folder / "x_override.kf.hcl"
    everything = tuple(declared(folder).values())
    save_overrides(place, {parse_address("kafka_topic.orders"): MOVED}, everything)
    assert choose_override_file(read(folder), place) == place
    place.write_text("# mine\n", "utf-8")
    with pytest.raises(UsageError, match="was not written by a proposal"):
        choose_override_file(read(folder), place)


@pytest.mark.parametrize(
    "name", ["x.kf.hcl", "x_override.tf", "x_override.kf.json", "sub/x_override.kf.hcl", "x"]
)
def test_only_an_override_file_of_the_folder_is_written(folder: Path, name: str) -> None:
    """Any other name would declare the objects twice, or not at all."""
    with pytest.raises(UsageError, match="would not override the files of this folder"):
        choose_override_file(read(folder), folder / name)


def test_a_terraform_folder_gets_a_terraform_file(tmp_path: Path) -> None:
    """The names are those of the files that are read."""
    (tmp_path / "main.tf").write_text(MAIN, "utf-8")
    place = tmp_path / "x_override.tf"
    assert choose_override_file(read(tmp_path), place) == place


def test_there_is_nothing_to_override_without_a_configuration(tmp_path: Path) -> None:
    """The advice says what to leave away."""
    with pytest.raises(UsageError, match="flags name the system"):
        choose_override_file(None, tmp_path / "x_override.kf.hcl")
