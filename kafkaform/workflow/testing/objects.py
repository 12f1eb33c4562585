"""Create the objects of `given` blocks, as somebody outside of kafkaform would.

They are declared and applied like any configuration, with a state that is thrown away: so every
kind of object can be given, and the provider's own rules and requests make it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ...audit.sink import MemorySink
from ...core.diagnostics import Diagnostics, has_errors
from ...core.errors import Blocked, ConfigurationError, Ended, Interrupted, KafkaformError
from ...language.tests.suites import make_given_tree
from ...plan.model import Options, Plan
from ...state.backend import MemoryBackend
from ...syntax.nodes import Attribute, Block
from ..events import PlanChosen, RunEvent
from ..operations import apply_changes
from .stage import Stage, list_blocked

# An object that is there already becomes as it is given, without losing what it has besides.
_EVERYTHING = Options(adopt=("*",))
_CONTEXT = "while creating the given objects"


def create_given(stage: Stage, blocks: Sequence[Block], values: Mapping[str, Attribute]) -> None:
    """Create or change live objects. values: the variables that the blocks see. Raises
    ConfigurationError with every fault."""
    if not blocks:
        return
    tree = make_given_tree(blocks, values, stage.subject.found.providers)
    configuration = stage.configure_tree(tree)
    desired = configuration.evaluate().desired
    if has_errors(desired.diagnostics):
        raise _make_error(desired.diagnostics)
    plans: list[Plan] = []

    def note(event: RunEvent) -> None:
        if isinstance(event, PlanChosen):
            plans.append(event.plan)

    try:
        space = stage.open_workspace(configuration, desired, MemoryBackend(), MemorySink())
        apply_changes(
            space, options=_EVERYTHING, approve=lambda plan: True, wait=False, progress=note
        )
    except Interrupted as interrupted:
        raise Ended(interrupted.signal_number) from None
    except Blocked as error:
        blocked = tuple(fault for _, fault in list_blocked(plans[-1] if plans else None))
        raise _make_error(blocked or error.diagnostics) from None
    except KafkaformError as error:
        raise _make_error(error.diagnostics) from None


def _make_error(faults: Diagnostics) -> ConfigurationError:
    causes = tuple(replace(fault, context=(*fault.context, _CONTEXT)) for fault in faults)
    return ConfigurationError("the given objects cannot be created", diagnostics=causes)
