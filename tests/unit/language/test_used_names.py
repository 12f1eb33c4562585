"""What a configuration uses of which provider is seen in its text."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.language.declare.folder import load_folder
from kafkaform.language.declare.settings import list_used_names

CASES = {
    "provider": ('provider "acme" {}', {"acme"}),
    "resource": ('resource "acme_user" "a" {}', {"acme_user"}),
    "data": ('data "acme_user" "a" {}', {"acme_user"}),
    "data of a check": ('check "a" {\n  data "acme_user" "a" {}\n}', {"acme_user"}),
    "removed": ("removed {\n  from = acme_user.a\n}", {"acme_user"}),
    "moved": ("moved {\n  from = acme_user.a\n  to = acme_group.b\n}", {"acme_user", "acme_group"}),
    "import": ('import {\n  to = module.m["k"].acme_user.a\n  id = "x"\n}', {"acme_user"}),
    "in quotes": ('removed {\n  from = "module.m.acme_user.a"\n}', {"acme_user"}),
    "a whole module": ("moved {\n  from = module.m\n  to = module.n\n}", set()),
    "no label": ("resource {}", set()),
    "others": ('variable "x" {}\nlocals {\n  a = 1\n}', set()),
}


@pytest.mark.parametrize(("text", "names"), CASES.values(), ids=CASES)
def test_names_in_blocks(text: str, names: set[str]) -> None:
    """Each block that can name a provider or one of its types does so, also where it is wrong."""
    assert list_used_names(load_folder({"main.kf.hcl": f"{text}\n".encode()})) == names


def test_names_in_modules() -> None:
    """The files of called modules count too."""
    inner = load_folder({"main.kf.hcl": b'resource "acme_user" "a" {}\n'})
    tree = replace(load_folder({"main.kf.hcl": b"locals {}\n"}), modules={"m": inner})
    assert list_used_names(tree) == {"acme_user"}
