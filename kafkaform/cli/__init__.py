"""In: a command line. Out: text for people or JSON for programs, and an exit code.

Must not know: how a plan is made or sent; it wires packages together and prints.
"""

import gc

GARBAGE = 500_000
"""New objects before the garbage collector runs; Python's default is 700."""

# A command makes hundreds of thousands of objects and hardly any garbage, so searching them all the
# time is wasted. It is set here because this runs before any of them is loaded.
gc.set_threshold(GARBAGE)
