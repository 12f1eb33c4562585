"""In: command lines, as users of Terraform and of Kafka's own tools type them, too; commands of
providers. Out: flags that several commands share, commands for typer. Must not know: what a command
does with them."""

from typing import TYPE_CHECKING

from ...core.lazy import load_on_use

# Only a wrong command line needs advice, and only a key press completions.
if TYPE_CHECKING:
    from . import advice, completion
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["advice", "completion"]
