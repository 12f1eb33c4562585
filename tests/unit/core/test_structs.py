"""Records are frozen structs. A repr leaves out secrets; a cache is no part of a record."""

from __future__ import annotations

import ast
import copy
import importlib
import pickle
import sys
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import force_setattr, replace

from kafkaform.core.address import Address
from kafkaform.core.resource import Identity
from kafkaform.core.schema import STRING, Type
from kafkaform.core.secret import PartialRepr
from kafkaform.core.value import EMPTY
from kafkaform.state.model import Row

from ...kit.sources import ROOT, list_nodes, list_sources

SOURCES = list_sources()
STANDARD = {"fleet/landed/topic_source.py"}
"""Spark pickles this module by value, so that its workers need neither kafkaform nor msgspec."""
CHANGING = {
    *("ObjectBackend", "LocalBackend", "ObjectSink", "LocalSink", "Watch", "DeliveryState"),
    *("Ledger", "Stop", "Unsent", "Execution", "Announcer", "_Grounds", "_Work"),
    *("Origins", "FolderScreens"),
    *("Run", "Scope", "Declarations", "Collector", "Budget", "Env", "Allowance", "ClusterProof"),
    *("_Word", "_Line", "_Namer", "_Text", "_OpenBody", "OpenFrame", "_YamlReader", "_Scanner"),
    *("BlockDraft", "BuildWorkspace", "Stamper", "Stencil", "_JsonReader", "_Merger"),
    *("TextScreen", "JsonScreen", "Completer", "Fate"),
    *("_Planned", "_Unseen", "_Bucket", "Mutations", "Search", "_Leadership"),
    # The tokens that a plan has seen.
    "_Existing",
    # The outline of a text that an editor has open, while its tokens are read.
    *("BlockOutline", "ItemOutline", "Chain", "OpenPart", "_OutlineWalk", "OutlineCache"),
    # What one pass over a log finds.
    *("RunEntry", "LogSurvey", "RunSurvey", "ObjectEntry"),
    # How fast a system takes changes, as far as a run knows; what an editor has parsed.
    *("Pace", "ParseCache"),
    # What one pass over a log finds of writes and changes; what is read of a checkpoint.
    *("Indexer", "WrittenPaths", "ToldChanges", "_LiveObject", "_ChangeTeller", "_ReadCounter"),
    "_CheckpointWatch",
    # What simulated workers run.
    "SimulatedConnector",
    # The search for a time in a log, and what becomes of a topic by the changes of a plan.
    *("_Range", "_Outlook"),
    # What looks may still ask; a look that is under way.
    *("LookBudget", "_Run"),
}
"""Structs that change: work in hand, and the things that do it."""


@cache
def definitions(path: Path) -> tuple[ast.AST, ...]:
    """Classes and imports of a module."""
    kinds = ast.ClassDef | ast.Import | ast.ImportFrom
    return tuple(node for node in list_nodes(path) if isinstance(node, kinds))


def test_nouns_are_frozen() -> None:
    """A struct can be changed only if it is listed here as work in hand."""
    changing = {
        node.name
        for path in SOURCES
        for node in definitions(path)
        if isinstance(node, ast.ClassDef)
        and "Struct" in map(ast.unparse, node.bases)
        and "frozen=True" not in map(ast.unparse, node.keywords)
    }
    assert changing == CHANGING


def test_no_dataclasses() -> None:
    """No module makes dataclasses, which cost a millisecond each when a command starts."""
    makers = {
        path.relative_to(ROOT / "kafkaform").as_posix()
        for path in SOURCES
        for node in definitions(path)
        if (isinstance(node, ast.ImportFrom) and node.module == "dataclasses")
        or (isinstance(node, ast.Import) and "dataclasses" in {name.name for name in node.names})
    }
    assert makers == STANDARD


def hiding() -> list[type[PartialRepr]]:
    """Each class that names fields which its repr does not show."""
    found = []
    for path in SOURCES:
        if "_unshown = " in path.read_text(encoding="utf-8"):
            base = "kafkaform" if path.is_relative_to(ROOT / "kafkaform") else "providers"
            parts = path.relative_to(ROOT / base).with_suffix("").parts
            name = ".".join(("kafkaform", *parts) if base == "kafkaform" else parts)
            members = vars(importlib.import_module(name)).values()
            own = [each for each in members if getattr(each, "__module__", "") == name]
            found += [each for each in own if "_unshown" in getattr(each, "__dict__", ())]
    return found


@pytest.mark.parametrize("cls", hiding(), ids=lambda cls: cls.__name__)
def test_a_repr_leaves_out_what_is_not_shown(cls: type[PartialRepr]) -> None:
    """No field that a class hides is in the repr that it inherits, nor in the one rich makes; each
    name is one of its fields."""
    assert cls._unshown <= set(cls.__struct_fields__)
    made = cls(**{name: f"<{name}>" for name in cls.__struct_fields__})
    for name in cls.__struct_fields__:
        shown = name not in cls._unshown
        assert (f"<{name}>" in repr(made)) == (f"{name}=" in repr(made)) == shown
    assert {name for name, _ in made.__rich_repr__()} == set(cls.__struct_fields__) - cls._unshown


class Kept(int):
    """An object that nobody else holds."""


@pytest.mark.parametrize(
    ("plain", "slot"),
    [
        (Address("t", "n"), "_text"),
        (Type("list", STRING), "_hash"),
        (Row(Identity("i", "t", "k"), ("t.n",), 1, EMPTY), "_line"),
    ],
)
def test_what_is_kept_for_speed_is_no_field(plain: Address | Type | Row, slot: str) -> None:
    """It takes no part in comparing, copying and pickling, and goes with its object."""
    kept = Kept(hash(plain))
    count = sys.getrefcount(kept)
    full = copy.copy(plain)
    force_setattr(full, slot, kept)
    assert full == plain and hash(full) == hash(plain) and repr(full) == repr(plain)
    for twin in (copy.copy, copy.deepcopy, replace, lambda each: pickle.loads(pickle.dumps(each))):
        other = twin(full)
        assert other == plain and not isinstance(getattr(other, slot, None), Kept)
    del full
    assert sys.getrefcount(kept) == count
