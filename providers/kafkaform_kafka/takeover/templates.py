"""Recognise templates, which are rendered by other tools before anybody reads them as YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct


class TemplateLanguage(Struct, frozen=True):
    """A language that files are written in before they are YAML."""

    name: str
    mark: re.Pattern[str]
    """What only this language has."""
    command: str
    """What renders it; empty if that can be one of many tools."""


LANGUAGES: Sequence[TemplateLanguage] = (
    TemplateLanguage(
        "a Helm template",
        re.compile(
            r"\{\{-?\s*(?:/\*|[.$]|include\b|template\b|range\b|if\b|else\b|end\b|with\b|define\b"
            r"|tpl\b|toYaml\b|required\b|default\b|printf\b|quote\b)"
        ),
        "`helm template`",
    ),
    TemplateLanguage("a Handlebars template", re.compile(r"\{\{\{|\{\{[#/^>!&~]"), ""),
    TemplateLanguage("a Jinja template", re.compile(r"\{%|\{#"), ""),
    TemplateLanguage("an ERB template", re.compile(r"<%"), ""),
    TemplateLanguage("a template", re.compile(r"\{\{"), ""),
    TemplateLanguage("a text with variables", re.compile(r"\$\{\w+\}"), "`envsubst`"),
)
"""The first one with a mark in the text is the language of it."""
_COMMANDS: Mapping[str, str] = {"jikkou": "`jikkou prepare --files ...`"}
"""Tools that render their templates themselves."""
_CONTROL = re.compile(rb"^[ \t]*(?:\{\{|\{%|<%)", re.MULTILINE)
_JINJA = re.compile(r"\{\{|\{%|\{#")
_COMMENT = re.compile(r"\s*#")


def find_template(content: bytes, tool: str) -> tuple[int, str] | None:
    """The first line with a mark of a template, from 1, and what to do; None if there is none.

    A comment is no line of a template, except for a tool that renders comments, too.
    """
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        if tool not in _COMMANDS and _COMMENT.match(line):
            continue
        # A variable alone is also a value of YAML, so it does not make a file a template.
        if any(language.mark.search(line) for language in LANGUAGES[:-1]):
            return number, describe_template(line, content.decode(errors="replace"), tool)
    return None


def is_rendered_whole(content: bytes) -> bool:
    """Whether there are conditions or loops around parts of the text, so that no part of it can be
    read alone."""
    return _CONTROL.search(content) is not None


def describe_template(text: str, whole: str, tool: str) -> str:
    """What the text is, and what to do first. whole: the text around it, which may say more."""
    if tool in _COMMANDS and _JINJA.search(text):
        name, command = "a Jinja template", _COMMANDS[tool]
    else:
        language = next(language for language in LANGUAGES if language.mark.search(whole))
        name, command = language.name, language.command
    means = f", for example with {command}," if command else ""
    return f"{name}: render it first{means} and take over the result"


def is_template(text: str, *, variables: bool = True) -> bool:
    """Whether a value has a mark of a template in it. variables: `${NAME}` is one, too."""
    languages = LANGUAGES if variables else LANGUAGES[:-1]
    return any(language.mark.search(text) for language in languages)
