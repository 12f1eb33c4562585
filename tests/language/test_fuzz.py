"""Damaged configurations are evaluated, formatted and asked, whatever the damage.

150 of them in each run; `KAFKAFORM_FUZZ=20000 pytest tests/language/test_fuzz.py` tries more, and
`KAFKAFORM_FUZZ_SEED=N` the one text of that seed.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest

from kafkaform.cli.configuration import schemas
from kafkaform.core.errors import KafkaformError
from kafkaform.language.confined import confined
from kafkaform.language.console import evaluator
from kafkaform.language.desired import Inputs, Schemas, evaluated, load
from kafkaform.language.graph import edges
from kafkaform.provider.registry import Registry

from ..syntax.test_fuzz import DAMAGES, corpus

COUNT = int(os.environ.get("KAFKAFORM_FUZZ", "150"))
SEED = os.environ.get("KAFKAFORM_FUZZ_SEED")
SECONDS, CHARACTERS = 5, 20_000
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MODULE = b'variable "name" {}\noutput "name" { value = var.name }\n'


@cache
def offered() -> Schemas:
    registry = Registry()
    return schemas({name: registry.load(name) for name in registry.names})


def text_of(seed: int) -> tuple[str, str]:
    """A file name and a damaged text; half of the texts are whole files, where damage goes far."""
    dice = random.Random(seed)
    files = [text for text in corpus() if "resource" in text or "provider" in text]
    text = dice.choice(files if dice.random() < 0.5 else corpus())
    if "\n" not in text:
        text = f'locals {{\n  x = {text}\n}}\noutput "o" {{\n  value = local.x\n}}\n'
    for _ in range(dice.randint(0, 4)):
        text = (dice.choice(DAMAGES)(text, dice) or "\n")[:CHARACTERS]
    return dice.choice(("main.kf.hcl", "main.kf.hcl", "main.tf", "main.kf.json")), text


def check(name: str, text: str, folder: Path) -> None:
    """Raises for whatever is neither an evaluated configuration nor diagnostics."""
    files = {name: text.encode("utf-8", "surrogateescape")}
    tree = load(files, lambda _: {"main.kf.hcl": MODULE})
    for partial in (False, True):
        read = confined(folder, folder)
        built = evaluated(tree, Inputs(partial=partial), offered(), read)
        for fault in built.desired.diagnostics:
            assert fault.summary
    edges(built.run.graph)
    ask = evaluator(built)
    for question in ("local.x", "module.m", "[for x in [1] : x]", text[:200]):
        value, faults = ask(question)
        assert (value is None) == bool(faults)


@pytest.mark.timeout(60 + COUNT)
def test_damaged_configurations_are_answered(tmp_path: Path) -> None:
    """No configuration makes the evaluation crash or dawdle; one that does is kept, with its
    seed."""
    for seed in range(COUNT) if SEED is None else [int(SEED)]:
        name, text = text_of(seed)
        begun = time.process_time()
        try:
            check(name, text, tmp_path)
            assert time.process_time() - begun < SECONDS
        except KafkaformError:
            continue  # an answer, too
        except Exception as error:
            saved = Path(tempfile.gettempdir(), f"kafkaform-fuzz-{seed}-{name}")
            saved.write_bytes(text.encode("utf-8", "surrogateescape"))
            raise AssertionError(f"KAFKAFORM_FUZZ_SEED={seed}: {error!r}; see {saved}") from error
