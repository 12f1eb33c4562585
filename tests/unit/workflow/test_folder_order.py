"""The order of folders that read each other's outputs, and circles of them."""

from __future__ import annotations

from pathlib import Path

from kafkaform.core.diagnostics import Range
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.configuration.repository_choice import choose_folders
from kafkaform.workflow.repository.planning import (
    FolderOrder,
    find_needed_folders,
    name_needs,
    order_folders,
)

from .test_repository_file import make_files

FILE = 'repository {\n  name = "acme"\n}\n\nfolders "**" {\n}\n'
MODULE = 'module "m" {\n  source = "../modules/reader"\n}\n'


def read(folder: str, name: str = "a") -> str:
    return f'data "kafkaform_outputs" "{name}" {{\n  folder = {folder}\n}}\n'


def order(top: Path, **texts: str) -> FolderOrder:
    """The order of folders with these texts."""
    files = {f"{name}/main.kf.hcl": text for name, text in texts.items()}
    make_files(top, {"kafkaform.hcl": FILE, **files})
    choice = choose_folders(top, True, (), None)
    needs = {}
    for folder in choice.folders:
        configuration = read_configuration(
            top / folder.path, Inputs.read((), environment={}), repository_folder=folder
        )
        needed = find_needed_folders(configuration)
        needs[folder.path] = name_needs(choice.repository, folder, needed)
    return order_folders(needs)


def test_a_folder_comes_after_those_that_it_reads(tmp_path: Path) -> None:
    """Nothing has a state yet, so this is what the text says."""
    found = order(
        tmp_path,
        platform="",
        network="",
        shop=read('"../platform"'),
        web=read('"../shop"') + read('"../network"', "b"),
        alone="",
    )
    assert found.layers == (("alone", "network", "platform"), ("shop",), ("web",))
    assert not found.circles
    assert str(found.needs["web"]["network"]) == "web/main.kf.hcl:4:1"


def test_every_way_to_write_a_folder_counts(tmp_path: Path) -> None:
    """An expression, several folders at once, a check, and a module."""
    make_files(tmp_path, {".git/HEAD": "", "modules/reader/main.kf.hcl": read('"../platform"')})
    found = order(
        tmp_path,
        platform="",
        a='locals {\n  at = ".."\n}\n' + read('"${local.at}/platform"'),
        b='data "kafkaform_outputs" "all" {\n  for_each = toset(["a", "platform"])\n'
        '  folder   = "../${each.key}"\n}\n',
        c='check "c" {\n' + read('"../b"') + "  assert {\n"
        '    condition     = data.kafkaform_outputs.a.outputs.a == 1\n    error_message = "No."\n'
        "  }\n}\n",
        d=MODULE,
    )
    assert {path: set(needs) for path, needs in found.needs.items()} == {
        "a": {"platform"},
        "b": {"a", "platform"},
        "c": {"b"},
        "d": {"platform"},
        "modules/reader": set(),
        "platform": set(),
    }
    assert str(found.needs["d"]["platform"]) == "modules/reader/main.kf.hcl:1:1"


def test_folders_outside_of_the_repository_have_no_place_in_the_order(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    found = order(tmp_path / "top", a=read('"../../elsewhere"'), b=read('"../nowhere"'))
    assert found.layers == (("a", "b"),)


def test_a_circle_is_a_fault_with_the_chain(tmp_path: Path) -> None:
    """Of its folders alone: the others keep their order."""
    found = order(
        tmp_path,
        a="\n" + read('"../b"'),
        b=read('"../c"'),
        c="\n\n" + read('"../a"'),
        user=read('"../a"'),
        alone="",
    )
    assert found.circles.keys() == {"a", "b", "c"}
    (fault,) = found.circles["b"].diagnostics
    assert str(fault.range) == "a/main.kf.hcl:2:1"
    assert fault.summary == "a needs its own outputs, through other folders"
    assert fault.detail == (
        "a (a/main.kf.hcl:2:1) → b (b/main.kf.hcl:1:1) → c (c/main.kf.hcl:3:1) → a"
    )
    assert found.layers == (("alone", "user"),)
    assert set(found.needs["user"]) == {"a"}


def test_a_long_chain_is_ordered() -> None:
    """Longer than Python's stack."""
    place = Range("main.kf.hcl", 1, 1, 1, 1)
    names = [f"f{number:05}" for number in range(3_000)]
    needs = {
        name: {} if not number else {names[number - 1]: place} for number, name in enumerate(names)
    }
    assert order_folders(needs).layers == tuple((name,) for name in names)
