"""In: nodes of expressions. Out: closures that yield values when they get an environment, and what
an expression refers to as far as its text tells. Must not know: blocks, modules, resource types.
"""
