"""`kafkaform validate`: is the configuration sound? Offline, needs no broker and no state."""

from __future__ import annotations

from ..options.flags import Json, NoColor, Untrusted, Var, VarFile
from ..terminal import validation


def validate(
    var: Var = [],
    var_file: VarFile = [],
    untrusted: Untrusted = False,
    json: Json = False,
    no_color: NoColor = False,
) -> int:
    """Check the configuration offline.

    Shows the place of each error and what to do about it.
    """
    return validation.validate(var, var_file, untrusted=untrusted, json=json, no_color=no_color)
