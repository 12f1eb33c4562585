"""What the properties of each JSON body are, by Terraform's JSON configuration syntax."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ...syntax.json import StringMode


class JsonForm(Struct, frozen=True):
    """How a block is written in JSON."""

    labels: int = 0
    """How many levels of labels are around the body."""
    blocks: Mapping[str, str] = field(default_factory=dict)
    """Type of a nested block -> its key in FORMS."""
    modes: Mapping[str, StringMode] = field(default_factory=dict)
    """Arguments whose strings are not read in `mode`."""
    mode: StringMode = StringMode.TEMPLATE
    """How the strings of arguments are read."""


def _make_modes(spelled: str = "", literal: str = "", path: str = "") -> Mapping[str, StringMode]:
    return {
        **dict.fromkeys(spelled.split(), StringMode.SPELLED),
        **dict.fromkeys(literal.split(), StringMode.LITERAL),
        **dict.fromkeys(path.split(), StringMode.PATH),
    }


def _map_to_same(names: str) -> Mapping[str, str]:
    return {name: name for name in names.split()}


_RULES = {"precondition": "plain", "postcondition": "plain"}
_OBJECT = JsonForm(
    2,
    {**_map_to_same("lifecycle dynamic provisioner"), "connection": "plain"},
    _make_modes("provider depends_on"),
)
_WAIVERS = {"waiver": "waiver"}
_SETTINGS = _make_modes(literal="required_version")

TOP: Mapping[str, JsonForm] = {
    "kafkaform": JsonForm(0, _map_to_same("backend"), _SETTINGS),
    "terraform": JsonForm(
        0, _map_to_same("backend cloud encryption required_providers provider_meta"), _SETTINGS
    ),
    "language": JsonForm(),
    "provider": JsonForm(1, _map_to_same("dynamic"), _make_modes(literal="alias version")),
    "resource": _OBJECT,
    "data": _OBJECT,
    "ephemeral": _OBJECT,
    "module": JsonForm(
        1, _map_to_same("lifecycle"), _make_modes("providers depends_on", "source version")
    ),
    "variable": JsonForm(
        1, {"validation": "plain"}, _make_modes("type", "default description deprecated")
    ),
    "locals": JsonForm(),
    "output": JsonForm(1, _RULES, _make_modes("depends_on", "description deprecated")),
    "check": JsonForm(1, {"data": "data", "assert": "plain"}),
    # Addresses are spelled in strings: `"from": "kafka_topic.old"`.
    "removed": JsonForm(
        0,
        {"lifecycle": "plain", "provisioner": "provisioner", "connection": "plain"},
        _make_modes("from"),
    ),
    "import": JsonForm(0, {}, _make_modes("to provider")),
    "moved": JsonForm(0, {}, _make_modes("from to")),
    "policy": JsonForm(1, _WAIVERS, _make_modes(literal="severity description")),
    "policy_set": JsonForm(1, _WAIVERS, _make_modes(literal="severity enable")),
}
FORMS: Mapping[str, JsonForm] = {
    **TOP,
    "plain": JsonForm(),
    "waiver": JsonForm(mode=StringMode.LITERAL),
    "lifecycle": JsonForm(
        0, _RULES, _make_modes("replace_triggered_by", path="ignore_changes ignore_changes_except")
    ),
    "dynamic": JsonForm(1, _map_to_same("content"), _make_modes("iterator")),
    "content": JsonForm(0, _map_to_same("dynamic")),
    "backend": JsonForm(1),
    "cloud": JsonForm(0, {"workspaces": "plain"}),
    "encryption": JsonForm(),
    "required_providers": JsonForm(mode=StringMode.LITERAL),
    "provider_meta": JsonForm(1),
    "provisioner": JsonForm(1),
}
ROOT = JsonForm(blocks={name: name for name in TOP})
"""A configuration file."""
VALUES = JsonForm(mode=StringMode.LITERAL)
"""A file of variable values."""
