"""Homes for the sandboxes of the walks."""

from ...kit.sandbox_homes import home, module_home

__all__ = ["home", "module_home"]
