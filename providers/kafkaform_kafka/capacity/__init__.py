"""What fits on the disks of brokers: how full they are, how fast they fill, and what a plan adds.

In: the connection, and changes. Out: disks, growth, projections. Must not know: findings,
documents, pages.
"""

from typing import TYPE_CHECKING

from kafkaform.core.lazy import load_on_use

# Only plans need forecasts.
if TYPE_CHECKING:
    from . import amounts, forecast
else:
    __getattr__ = load_on_use(__name__)

__all__ = ["amounts", "forecast"]
