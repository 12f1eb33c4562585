"""JulieOps: the properties file that decides about names is the one that JulieOps runs with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.core.errors import UsageError
from kafkaform.provider.contract import ForeignFiles
from kafkaform_kafka.takeover.julieops import read_declarations

SEPARATOR = "topology.topic.prefix.separator"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(
        "context: acme\nprojects: [{name: shop, topics: [{name: orders}]}]\n"
    )
    return tmp_path


def list_names(files: ForeignFiles) -> list[str]:
    return [item.arguments["name"] for item in files.objects]


def test_the_file_is_named(folder: Path) -> None:
    """Which file decides is said; other properties, such as passwords, are not."""
    (folder / "a.properties").write_text(f"sasl.jaas.config=secret\n{SEPARATOR} = _\n")
    (folder / "log4j.properties").write_text("rootLogger=INFO\n")
    made = read_declarations((folder,))
    assert list_names(made) == ["acme_shop_orders"]
    assert made.notes == (
        f"The settings of JulieOps are those of {folder}/a.properties: {SEPARATOR}=_.",
    )


def test_defaults_are_said(folder: Path) -> None:
    """Without a file, names can be others than those that are live, so it is said."""
    made = read_declarations((folder,))
    assert list_names(made) == ["acme.shop.orders"]
    assert "its defaults" in made.notes[0]
    assert "--clientConfig" in made.notes[0]


@pytest.mark.parametrize("other", [f"{SEPARATOR}: -", "topology.acls.optimized=true"])
def test_two_files_that_differ(folder: Path, other: str) -> None:
    """Both files and the key are named, also if one leaves the default; the one that is named on
    the command line counts."""
    (folder / "dev.properties").write_text(f"# dev\n{SEPARATOR}=_\n")
    (folder / "prod.properties").write_text(f"{other}\n")
    with pytest.raises(UsageError) as caught:
        read_declarations((folder,))
    assert f"{folder}/dev.properties:2 says '_'" in caught.value.message
    assert f"{folder}/prod.properties" in caught.value.message
    assert SEPARATOR in caught.value.message
    assert "dev.properties" in caught.value.advice
    made = read_declarations((folder, folder / "dev.properties"))
    assert list_names(made) == ["acme_shop_orders"]


def test_two_files_that_agree(folder: Path) -> None:
    """Both are named."""
    for name in ("a", "b"):
        (folder / f"{name}.properties").write_text(f"{SEPARATOR}=_\n")
    made = read_declarations((folder,))
    assert list_names(made) == ["acme_shop_orders"]
    assert "b.properties" in made.notes[0]


def test_several_paths(folder: Path, tmp_path: Path) -> None:
    """Topologies and plans can be in several places; a file that is named twice is read once."""
    (folder / "other").mkdir()
    plans = folder / "other/plans.yaml"
    plans.write_text("plans: {gold: {config: {retention.ms: '5'}}}\n")
    topology = folder / "shop.yaml"
    topology.write_text(topology.read_text().replace("name: orders", "name: orders, plan: gold"))
    made = read_declarations((topology, plans, folder / "shop.yaml"))
    assert [item.arguments["config"] for item in made.objects] == [{"retention.ms": "5"}]
    assert not made.omissions
