"""`kafkaform validate`: is the configuration sound? Offline, needs no broker and no state."""

from __future__ import annotations

from .. import validating
from ..flags import Json, NoColor, Untrusted, Var, VarFile


def validate(
    var: Var = [],
    var_file: VarFile = [],
    untrusted: Untrusted = False,
    json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Check the configuration offline. Every fault comes with its place and advice."""
    return validating.validate(var, var_file, untrusted=untrusted, json=json, no_color=no_color)
