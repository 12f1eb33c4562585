"""Damaged folders are evaluated, drawn, formatted and asked, whatever the damage.

300 of them in each run; `KAFKAFORM_FUZZ=20000 pytest tests/unit/language/test_fuzz.py` tries more,
and `KAFKAFORM_FUZZ_SEED=N` the one folder of that seed.
"""

from __future__ import annotations

import ast
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

from kafkaform.core.canonical import dumps
from kafkaform.core.errors import KafkaformError
from kafkaform.language.console import make_evaluator
from kafkaform.language.desired import Built, Schemas, VariableInputs, evaluate_tree, load_tree
from kafkaform.language.functions.files import make_confined_reader
from kafkaform.provider.registry import Registry
from kafkaform.render.diagnostics import make_diagnostic_data, render_diagnostics
from kafkaform.render.terraform import render_dot
from kafkaform.syntax.write import format_text
from kafkaform.workflow.configuration.evaluation import collect_schemas

from ..syntax.test_fuzz import DAMAGES, ROOT, corpus

COUNT = int(os.environ.get("KAFKAFORM_FUZZ", "300"))
SEED = os.environ.get("KAFKAFORM_FUZZ_SEED")
SECONDS, CHARACTERS = 5, 20_000
NAMES = (
    "main.kf.hcl",
    "main.kf.hcl",
    "x_override.kf.hcl",
    "main.tf",
    "main.kf.json",
    "a.auto.kfvars.hcl",
)
MODULE = 'variable "name" {}\noutput "name" { value = var.name }\n'
ASKED = ("local.x", "local", "module.m", "kafka_topic", "var", "[for x in [1] : x]", "path.module")
OWN = ("attacks.py", "floods.py", "test_hostile.py", "test_limits.py", "test_shown.py")
"""Bombs are no seeds: what is left of them would take the time of all others."""

Folder = Mapping[str, str]


@cache
def offered() -> Schemas:
    registry = Registry()
    return collect_schemas({name: registry.load(name) for name in registry.names})


@cache
def folders() -> Sequence[Folder]:
    """Whole folders: examples, golden cases, and what the tests of the language write."""
    places = [path.parent for path in sorted(ROOT.glob("examples/*/*.kf.hcl"))]
    places += [path.parent for path in sorted(ROOT.glob("tests/cases/*/main.kf.hcl"))]
    read = [
        {
            str(path.relative_to(place)): path.read_text("utf-8")
            for path in sorted(place.rglob("*"))
            if path.is_file() and path.suffix in (".hcl", ".tf", ".json", ".yaml", ".tftpl")
        }
        for place in dict.fromkeys(places)
    ]
    return [*read, *({"main.kf.hcl": text} for text in snippets())]


def snippets() -> Iterator[str]:
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and " {" in text and "=" in text and path.name not in OWN:
                yield text


def folder_of(seed: int) -> Folder:
    """A folder with a damaged file or two, or one expression in a folder of its own."""
    dice = random.Random(seed)
    if dice.random() < 0.3:
        text = dice.choice(corpus())
        if "\n" not in text:
            text = f'locals {{\n  x = {text}\n}}\noutput "o" {{\n  value = local.x\n}}\n'
        files = {dice.choice(NAMES): text, "provider.kf.hcl": 'provider "kafka" {}\n'}
    else:
        files = dict(dice.choice(folders()))
    for _ in range(dice.randint(0, 4)):
        name = dice.choice(list(files))
        files[name] = (dice.choice(DAMAGES)(files[name], dice) or "\n")[:CHARACTERS]
    if dice.random() < 0.1:
        files[dice.choice(NAMES)] = files.pop(dice.choice(list(files)))
    return files


def check(files: Folder, place: Path) -> None:
    """Raises for whatever is neither an evaluated configuration nor diagnostics."""
    data = {name: text.encode("utf-8", "surrogateescape") for name, text in files.items()}

    def of(folder: str) -> dict[str, bytes]:
        found = {
            path.rpartition("/")[2]: content
            for path, content in data.items()
            if path.rpartition("/")[0] == folder
        }
        return found if folder == "" or found else {"main.kf.hcl": MODULE.encode()}

    tree = load_tree(of(""), of)
    for partial in (False, True):
        built = evaluate_tree(
            tree, VariableInputs(partial=partial), offered(), make_confined_reader(place, place)
        )
        _show(built)
    ask = make_evaluator(built)
    for question in (*ASKED, *(text[:200] for text in files.values())):
        value, faults = ask(question)
        assert (value is None) == bool(faults)
    for text in files.values():
        format_text(text)


def _show(built: Built) -> None:
    faults = built.desired.diagnostics
    render_diagnostics(faults).encode()
    dumps([make_diagnostic_data(fault) for fault in faults])
    assert all(fault.summary for fault in faults)
    needs = built.run.graph.needs
    edges = ((str(node), str(needed)) for node, nodes in needs.items() for needed in nodes)
    render_dot(set(map(str, needs)), edges).encode()


@pytest.mark.timeout(60 + COUNT)
def test_damaged_folders_are_answered(tmp_path: Path) -> None:
    """No folder makes the evaluation crash or dawdle; one that does is kept, with its seed."""
    for seed in range(COUNT) if SEED is None else [int(SEED)]:
        files = folder_of(seed)
        begun = time.process_time()
        try:
            check(files, tmp_path)
            assert time.process_time() - begun < SECONDS
        except KafkaformError:
            continue  # an answer, too
        except Exception as error:
            saved = tmp_path / str(seed)
            for name, text in files.items():
                (saved / name).parent.mkdir(parents=True, exist_ok=True)
                (saved / name).write_bytes(text.encode("utf-8", "surrogateescape"))
            raise AssertionError(f"KAFKAFORM_FUZZ_SEED={seed}: {error!r}; see {saved}") from error
