"""Whether the disks of the brokers have room for what changes add to them."""

from __future__ import annotations

from ..capacity.readings import read_forecast
from ..rules.disks import find_full_disks
from .inquiry import Inquiry, Sighting


def look_at_disks(inquiry: Inquiry) -> Sighting:
    """The disks that get more by the changes, if they may not hold it."""
    forecast = read_forecast(inquiry.source, inquiry.changes, inquiry.objects)
    if forecast is None:
        return Sighting()
    return Sighting(tuple(find_full_disks(forecast)), forecast.gaps)
