"""Writes docs/man/*.1 from the help texts: `python docs/man_pages.py`.

A page for the program and one for each command, with its subcommands, as `--help` shows them; the
exit codes are those of the README. The wheel brings the pages (`share/man/man1`), a test compares
them with what this prints. The macros are those of man(7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkaform.cli.command_tree import get_commands
from kafkaform.version import VERSION

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs/man"
PROGRAM = "kafkaform"
_PARAGRAPH = re.compile(r"\n\s*\n")
_EXIT_ROW = re.compile(r"^\| (?P<code>\d[\d, ]*) \| (?P<meaning>.*) \|$", re.MULTILINE)
ENVIRONMENT = (
    ("KAFKAFORM_STATE", "Where the state is stored, if --state does not say it."),
    ("KAFKAFORM_POLICY", "Folders of policies, if --policy does not name any."),
    ("KAFKAFORM_ACTOR", "Who is named in the audit log, if no pipeline names somebody."),
    ("KF_VAR_NAME", "The value of the input variable NAME."),
)
FILES = (
    ("*.kf.hcl", "The configuration: all such files of the folder."),
    ("kafkaform.state.json", "The state."),
    ("kafkaform.audit.jsonl", "The audit log. Back it up together with the state."),
    (".kafkaform/", "The lock, and earlier versions of the state."),
)


def render_pages() -> dict[str, str]:
    """File name -> text of each page."""
    group = get_commands()
    root = _open_context(group, PROGRAM)
    pages = {f"{PROGRAM}.1": _join(_render_program(group, root))}
    for name in group.commands:
        command = group.commands[name]
        context = _open_context(command, name, root)
        pages[f"{PROGRAM}-{name}.1"] = _join(_render_command(command, context))
    return pages


def _open_context(command: Any, name: str, parent: Any = None) -> Any:
    settings = command.context_settings  # they have the short form of --help
    return command.context_class(command, info_name=name, parent=parent, **settings)


def _render_program(group: Any, context: Any) -> Iterator[str]:
    yield from _render_head(PROGRAM, group.help)
    yield from _render_synopsis(context)
    yield ".SH DESCRIPTION"
    yield _escape(
        f"{PROGRAM} reads a configuration in HCL and compares it with the clusters. A plan shows "
        "what would change; an apply sends exactly what was approved, and records each request "
        "before it is sent."
    )
    yield ".SH OPTIONS"
    yield from _render_options(group, context)
    yield ".SH COMMANDS"
    for name in group.commands:
        command = group.commands[name]
        yield from _render_entry(
            f"\\fB{_escape(f'{PROGRAM}-{name}')}\\fP(1)", command.get_short_help_str(limit=200)
        )
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_ROW.findall((ROOT / "README.md").read_text("utf-8")):
        yield from _render_entry(f"\\fB{_escape(code)}\\fP", meaning.replace("`", ""))
    for title, rows in (("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES)):
        yield f".SH {title}"
        for name, about in rows:
            yield from _render_entry(f"\\fB{_escape(name)}\\fP", about)


def _render_command(command: Any, context: Any) -> Iterator[str]:
    title = context.command_path.replace(" ", "-")
    yield from _render_head(title, command.help)
    members = getattr(command, "commands", {})
    contexts = {
        name: _open_context(one, name, context) for name, one in members.items() if not one.hidden
    }
    yield from _render_synopsis(*(contexts.values() or (context,)))
    yield ".SH DESCRIPTION"
    yield from _render_paragraphs(command.help)
    yield ".SH OPTIONS"
    yield from _render_options(command, context)
    if contexts:
        yield ".SH COMMANDS"
    for name, own in contexts.items():
        yield f".SS {_escape(own.command_path)}"
        yield from _render_paragraphs(members[name].help)
        yield from _render_options(members[name], own)
    yield ".SH SEE ALSO"
    yield f"\\fB{PROGRAM}\\fP(1)"


def _render_head(title: str, about: str) -> Iterator[str]:
    first = _PARAGRAPH.split(about)[0]
    yield '.\\" Made by docs/man_pages.py from the help texts.'
    yield f'.TH {_escape(title.upper())} 1 "" "{PROGRAM} {VERSION}" "{PROGRAM} manual"'
    # Hyphens stay as they are typed, so that a command can be copied out of the page.
    yield ".nh"
    yield ".SH NAME"
    yield f"{_escape(title)} \\- {_escape(_join_lines(first).rstrip('.'))}"


def _render_synopsis(*contexts: Any) -> Iterator[str]:
    yield ".SH SYNOPSIS"
    for number, context in enumerate(contexts):
        if number:
            yield ".br"
        words = " ".join(context.command.collect_usage_pieces(context))
        yield f"\\fB{_escape(context.command_path)}\\fP {_escape(words)}"


def _render_paragraphs(about: str) -> Iterator[str]:
    for number, paragraph in enumerate(_PARAGRAPH.split(about.strip())):
        if number:
            yield ".PP"
        yield _escape(_join_lines(paragraph))


def _render_options(command: Any, context: Any) -> Iterator[str]:
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    for names, about in filter(None, records):
        yield from _render_entry(f"\\fB{_escape(names)}\\fP", about or "")


def _render_entry(title: str, about: str) -> Iterator[str]:
    yield ".TP"
    yield title
    yield _escape(_join_lines(about)) or "\\&"


def _join_lines(text: str) -> str:
    return " ".join(text.split())


def _escape(text: str) -> str:
    """The text as roff takes it literally: no command at the start of a line, no typographic
    hyphens or quotes."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    plain = plain.replace("`", "\\(ga").replace("…", "...").replace("—", "\\(em")
    return f"\\&{plain}" if plain.startswith((".", "\\(aq")) else plain


def _join(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write every page, and remove those of commands that are gone."""
    pages = render_pages()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.1"):
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
