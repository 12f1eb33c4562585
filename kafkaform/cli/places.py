"""Where a user's files outside of any configuration are."""

from __future__ import annotations

import os
from pathlib import Path


def state_home() -> Path:
    """Our part of where programs keep what they know (XDG_STATE_HOME: absolute or unset)."""
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local/state") / "kafkaform"
