"""All hostile inputs in one list, each with the check that says what must become of it.

Most come from the tables of the tests of each part, with the very checks of those tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import patch

from kafkaform.audit.records import read_glances
from kafkaform.core.errors import KafkaformError
from kafkaform.plan.codec import decode, encode
from kafkaform.state import codec as states

from ...unit.kafka.connection import test_settings
from ...unit.language import test_yaml
from ...unit.render import test_hostile as shown
from ...unit.render import test_text
from ...unit.syntax import bombs
from ...unit.syntax import test_hostile as texts
from . import flips, test_output
from . import test_banned_modules as test_banned
from . import test_configurations as folders
from . import test_foreign_code as test_own_code
from . import test_forged_plans as test_forged
from . import test_links_and_pipes as test_places
from . import test_untrusted as untrusted
from .arena import Arena

Check = Callable[[], None]
"""Raises AssertionError if the input is not met as it should be."""


@dataclass(frozen=True)
class Input:
    """kind: the class of attack; name: within it."""

    kind: str
    name: str
    check: Check


@dataclass
class Stage:
    """arena: processes that are bounded; ask: parses one of the `bombs`; fresh: a new folder."""

    arena: Arena
    ask: texts.Parsed
    root: Path
    numbers: Iterator[int] = field(default_factory=count)

    def fresh(self) -> Path:
        folder = self.root / str(next(self.numbers))
        folder.mkdir()
        return folder


@contextmanager
def stage(root: Path) -> Iterator[Stage]:
    """Everything that the inputs are let loose on."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, {untrusted.BOOTSTRAP: "a:1"}))
        arena = Arena()
        stack.callback(arena.close)
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "tests.unit.syntax.bombs"]
        parser = stack.enter_context(subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True))
        assert parser.stdin is not None
        stack.callback(parser.stdin.close)
        yield Stage(arena, partial(_asked, parser), root)


def _asked(parser: subprocess.Popen[str], name: str) -> tuple[str, int, list[str]]:
    assert parser.stdin is not None and parser.stdout is not None
    print(name, file=parser.stdin, flush=True)
    seconds, megabytes, summary, line, severities = json.loads(parser.stdout.readline())
    assert seconds < texts.SECONDS and megabytes < texts.MEGABYTES
    return summary, line, severities


def corpus(on: Stage) -> Iterator[Input]:
    """Every input, class after class."""
    for part in (_configurations, _sources, _untrusted, _places, _files, _words, _modules):
        yield from part(on)


def _configurations(on: Stage) -> Iterator[Input]:
    for name in folders.ATTACKS:
        kind = f"configuration: {name.partition(':')[0]}"
        yield Input(kind, name, lambda n=name: folders.test_attacks(n, on.arena, on.fresh()))  # type: ignore[misc]
    tables: Mapping[str, tuple[Mapping[str, object], Callable[..., None]]] = {
        "configuration: floods": (folders.FLOODS, folders.test_floods),
        "configuration: paths": (folders.PLACES, folders.test_places),
    }
    for kind, (table, test) in tables.items():
        for name in table:
            yield Input(kind, name, lambda t=test, n=name: t(n, on.arena, on.fresh()))  # type: ignore[misc]


def _sources(on: Stage) -> Iterator[Input]:
    tables: Mapping[str, tuple[Mapping[str, object], Callable[..., None]]] = {
        "source: bombs": (bombs.REFUSED, texts.test_bomb_is_refused),
        "source: hidden characters": (
            bombs.WARNED,
            texts.test_hidden_characters_are_pointed_out,
        ),
        "source: large but legal": (bombs.ACCEPTED, texts.test_large_but_legal),
    }
    for kind, (table, test) in tables.items():
        for name in table:
            yield Input(kind, name, partial(test, name, on.ask))
    for text in test_yaml.REFUSED:
        yield Input("source: YAML", text[:40], partial(test_yaml.test_refused, text))
    check = test_settings.test_settings_of_a_client_that_could_do_harm_do_not_exist
    for name in test_settings.DANGEROUS:
        yield Input("settings of clients", name, partial(check, name))


def _untrusted(on: Stage) -> Iterator[Input]:
    for change, setting in untrusted.CHANGES.items():
        same = "" if "bootstrap" in change else 'bootstrap_servers = ["a:1"]'
        text = untrusted.block(f"{same}\n{change}") + untrusted.TOPIC
        told = (setting, "comes from the environment", "main.kf.hcl:3:1")
        yield Input("untrusted: connections", change, partial(_refused, on, text, told, "plan"))
    # The others need a checkout of git with links in it.
    outside = {path: why for path, why in untrusted.REFUSED.items() if path.startswith(("/", ".."))}
    for path, why in outside.items():
        for name in untrusted.FUNCTIONS:
            call = f'{name}("{path}")'
            text = f"locals {{\n  a = {call}\n}}\n"
            told = (why, "main.kf.hcl:2:")
            yield Input("untrusted: files", call, partial(_refused, on, text, told, "validate"))


def _refused(on: Stage, text: str, told: tuple[str, ...], command: str) -> None:
    folder = on.fresh() / "in"
    folder.mkdir()
    (folder / "main.kf.hcl").write_text(text)
    (folder / "x.txt").write_text(untrusted.CANARY)
    more = ("--state=s.json",) if command == "plan" else ()
    outcome = on.arena.run(folder, ((command, "--untrusted", *more), ""))
    said = " ".join(outcome.text.replace("│", " ").split())
    assert outcome.codes == (1,) and untrusted.CANARY not in said
    assert all(word in said for word in told), said


def _places(on: Stage) -> Iterator[Input]:
    for place in test_places.PLACES:
        for trap in test_places.TRAPS:
            yield Input(f"in place of: {place}", trap, partial(_trapped, on, place, trap))


def _trapped(on: Stage, place: str, trap: str) -> None:
    folder = on.fresh()
    (folder / "pr").mkdir()
    victim = folder / "victim"
    victim.write_bytes(test_places.BYTES)
    test_places.test_what_is_put_in_a_place(place, trap, victim)


def _files(on: Stage) -> Iterator[Input]:
    readers: Mapping[str, Callable[[bytes], object]] = {
        "no plan": lambda data: decode(data, "p.json"),
        "no state": lambda data: states.decode(data, "s.json"),
        "no log": lambda data: list(read_glances(data.splitlines() or [b""], "log")),
    }
    whole = encode(flips.plan())
    for kind, read in readers.items():
        for name, made in test_forged.ARCHIVES.items():
            yield Input(kind, name, partial(_unread, on, read, made, whole))


def _unread(
    on: Stage,
    read: Callable[[bytes], object],
    made: Callable[[bytes, Path], bytes],
    whole: bytes,
) -> None:
    there = on.fresh() / "made"
    try:
        read(made(whole, there))
    except KafkaformError:
        assert not there.exists()
        return
    raise AssertionError("it was read")


def _words(_: Stage) -> Iterator[Input]:
    for text in test_output.ALL_TEXTS:
        name = ascii(text)[:40]
        for kind, check in {
            "shown: terminals": shown.test_terminals_show_it_and_obey_nothing,
            "shown: colours": shown.test_colours_are_only_our_own,
            "shown: comments": shown.assert_only_text,
            "shown: JSON lines": shown.test_json_lines_stay_lines,
        }.items():
            yield Input(kind, name, partial(check, text))
    for text in test_output.names(500):
        yield Input("shown: Markdown", ascii(text)[:40], partial(shown.assert_only_text, text))
    for text in test_output.JINJA:
        yield Input("shown: templates", text, partial(test_output.assert_not_computed, [text]))
    for text in test_text.FORMULAS:
        check = test_text.test_a_cell_is_never_a_formula
        yield Input("shown: formulas", text, partial(check, text))


def _modules(on: Stage) -> Iterator[Input]:
    for names in test_own_code.COMMANDS:
        check = test_own_code.test_the_command_imports_nothing_from_the_folder
        yield Input("modules", " ".join(names), lambda w=names, c=check: c(on.fresh(), w))  # type: ignore[misc]
    for text in test_banned.SAMPLES:
        check_text = partial(test_banned.test_each_of_them_would_be_found, text)
        yield Input("code of data", text, check_text)
