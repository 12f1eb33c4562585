"""In: a command line. Out: text for people or JSON for programs, and an exit code.

Must not know: how a plan is made or sent; it wires packages together and prints.
"""
