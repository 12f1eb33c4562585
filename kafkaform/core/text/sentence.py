"""Clauses as sentences. By itself, because tables of rules, the language and commands all need it
and share nothing else."""

from __future__ import annotations

_OWN_NAME = "kafkaform"
"""It is written in lower case everywhere."""


def make_sentence(clause: object) -> str:
    """`write 5, or nothing` as `Write 5, or nothing.`; empty for an empty text.

    clause: a text, or a fault whose text it is.

    Only a plain word gets a capital letter: a first word in quotes or backticks, or with a dot, an
    underscore or an equals sign in it, is what somebody has to type.
    """
    text = str(clause)
    if not text:
        return ""
    word = text.split(maxsplit=1)[0].rstrip(",;:.?")
    plain = word.isalpha() and word != _OWN_NAME
    begin = text[0].upper() if plain else text[0]
    return f"{begin}{text[1:]}{'' if text.endswith(('.', '?')) else '.'}"
