"""What a property of a JSON body is, block by block: Terraform's JSON configuration syntax."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ...syntax.jsonvalues import Mode


class Form(Struct, frozen=True):
    """labels: how many stand before the body; blocks: name of a nested block -> its key in
    FORMS; modes: arguments whose strings are not read in `mode`."""

    labels: int = 0
    blocks: Mapping[str, str] = field(default_factory=dict)
    modes: Mapping[str, Mode] = field(default_factory=dict)
    mode: Mode = Mode.TEMPLATE


def _modes(spelled: str = "", literal: str = "", path: str = "") -> Mapping[str, Mode]:
    return {
        **dict.fromkeys(spelled.split(), Mode.SPELLED),
        **dict.fromkeys(literal.split(), Mode.LITERAL),
        **dict.fromkeys(path.split(), Mode.PATH),
    }


def _same(names: str) -> Mapping[str, str]:
    return {name: name for name in names.split()}


_RULES = {"precondition": "plain", "postcondition": "plain"}
_OBJECT = Form(2, _same("lifecycle dynamic"), _modes("provider depends_on"))
_SETTINGS = _modes(literal="required_version")

TOP: Mapping[str, Form] = {
    "kafkaform": Form(0, _same("backend"), _SETTINGS),
    "terraform": Form(
        0, _same("backend cloud encryption required_providers provider_meta"), _SETTINGS
    ),
    "provider": Form(1, _same("dynamic"), _modes(literal="alias version")),
    "resource": _OBJECT,
    "data": _OBJECT,
    "module": Form(1, {}, _modes("providers depends_on", "source version")),
    "variable": Form(1, {"validation": "plain"}, _modes("type", "default description deprecated")),
    "locals": Form(),
    "output": Form(1, _RULES, _modes("depends_on", "description deprecated")),
    "check": Form(1, {"data": "data", "assert": "plain"}),
    "removed": Form(0, {"lifecycle": "plain"}, _modes("from")),
    "import": Form(0, {}, _modes("to provider")),
    "moved": Form(0, {}, _modes("from to")),
}
FORMS: Mapping[str, Form] = {
    **TOP,
    "plain": Form(),
    "lifecycle": Form(
        0, _RULES, _modes("replace_triggered_by", path="ignore_changes ignore_changes_except")
    ),
    "dynamic": Form(1, _same("content"), _modes("iterator")),
    "content": Form(0, _same("dynamic")),
    "backend": Form(1),
    "cloud": Form(0, {"workspaces": "plain"}),
    "encryption": Form(),
    "required_providers": Form(mode=Mode.LITERAL),
    "provider_meta": Form(1),
}
ROOT = Form(blocks={name: name for name in TOP})
VALUES = Form(mode=Mode.LITERAL)
"""A file of variable values."""
