"""The operations behind `kafkaform fleet`: snapshots, builds, answers.

In: fleet.hcl, the fleet's clusters and states, a root. Out: landing files, tables, texts. Must not
know: how flags are parsed or answers are printed.
"""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# The commands of `fleet` need one of these each, and Spark is slow to load.
if TYPE_CHECKING:
    from . import answers, channels, register_file, runs, snapshot, unused
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["answers", "channels", "register_file", "runs", "snapshot", "unused"]
