"""Print outputs as HCL, which is how they were written. Apart from the screen, which `output` does
not load, and from the console, which does without the writer of HCL."""

from __future__ import annotations

from ...core.resource import Output
from ...core.value import Value
from ...render.text import SENSITIVE, inline, render_block
from ...render.text import render_value as plainly
from ...syntax.write import write_value


def render_output(item: Output) -> str:
    """`name = value`; a sensitive value is not shown."""
    text = SENSITIVE if item.sensitive else render_output_value(item.value)
    return f"{inline(item.name)} = {text}"


def render_output_value(value: Value) -> str:
    """The value as HCL, or as in a plan if HCL cannot express it."""
    try:
        return render_block(write_value(value))
    except ValueError:  # half of a surrogate pair, which older versions let in
        return plainly(value)
