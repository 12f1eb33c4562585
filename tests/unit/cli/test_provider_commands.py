"""Commands that providers add to `describe`, `explain`, `alter` and `propose`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.cli.command_tree import get_commands
from kafkaform.cli.options import provider_commands
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import (
    Answer,
    Command,
    CommandGroup,
    Operand,
    Option,
    Question,
)
from kafkaform.provider.registry import Registry

ROOT = Path(__file__).resolve().parents[3]


def ask_boxes(
    names: Annotated[list[str] | None, Operand("BOX", lambda *_: ["red "])] = None,
    size: Annotated[int, Option("--size", "How large.", "METRES", lambda *_: ["1 "])] = 1,
    full: Annotated[bool | None, Option("--full/--empty", "Only these.")] = None,
) -> Question:
    """Show boxes."""
    return Question(
        lambda _: Answer(FrozenMap(names=names, size=size, full=full)), lambda _: iter(())
    )


BOXES = CommandGroup("kafka", "Show things.", (Command("boxes", ask_boxes),))


def test_annotations_are_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    """The function gets what was typed, each word once; its docstring is the help."""
    monkeypatch.setattr(Registry, "load_commands", lambda *_: (BOXES,))
    made: list[object] = []

    def run(make: object, provider: str) -> object:
        assert provider == "kafka"

        def command(**given: object) -> None:
            made.append(make(**given))

        command.__signature__ = make.__signature__
        return command

    app = provider_commands.make_app("describe", run)
    with pytest.raises(SystemExit) as end:
        app(["a", "b", "--size", "3", "--empty"], prog_name="describe")
    assert end.value.code == 0
    (question,) = made
    assert isinstance(question, Question)
    document = question.read(None).document
    assert document == FrozenMap(names=["a", "b"], size=3, full=False)
    completions = provider_commands.find_completions("describe", "boxes")
    assert {flag: list(each([], tuple)) for flag, each in completions.items()} == {
        "": ["red "],
        "--size": ["1 "],
    }


@pytest.mark.parametrize("group", ["describe", "explain", "alter", "propose"])
def test_all_commands_of_built_in_providers_have_help(group: str) -> None:
    """A command without a docstring, or with a parameter that nobody can type, is found here."""
    commands = get_commands().commands[group].commands
    assert commands
    for name, command in commands.items():
        assert command.help, name
        provider_commands.find_completions(group, name)


def read_operands() -> dict[str, str]:
    """Command of `alter` -> its operands, as docs/commands.md lists them."""
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    table = text.partition("## alter")[2].partition("\n\nIn `--add-config")[0]
    return dict(re.findall(r"`([a-z-]+) ([A-Z=]+…?)`", table))


@pytest.mark.parametrize("name", sorted(get_commands().commands["alter"].commands))
def test_the_usage_of_alter_is_what_its_page_says(name: str) -> None:
    """The same word for the operand, in brackets where a flag can stand for it."""
    command = get_commands().commands["alter"].commands[name]
    operand = read_operands()[name]
    flags = {flag for parameter in command.params for flag in parameter.opts}
    usage = f"[{operand}]" if flags & {"--entity-default", "--create"} else operand
    context = command.make_context(name, [], resilient_parsing=True)
    assert command.collect_usage_pieces(context) == ["[OPTIONS]", usage]


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("describe configs", "--entity-type --entity-name --entity-default --name"),
        ("describe quotas", "--user --client-id --ip"),
        ("explain quota", "--user --client-id --ip"),
        ("explain access", "--topic --group --transactional-id --delegation-token --cluster"),
    ],
)
def test_flags_that_name_an_object_are_not_in_help(
    line: str,
    flags: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kind and name say the same. Who types such a flag is still understood."""
    monkeypatch.chdir(tmp_path)
    run_command_line([*line.split(), "--help"])
    said = capsys.readouterr().out
    assert "--json" in said and not set(flags.split()) & set(said.split())
    for flag in flags.split():
        value = [] if flag in ("--entity-default", "--cluster") else ["x"]
        run_command_line([*line.split(), flag, *value])
        assert "No such option" not in capsys.readouterr().err
