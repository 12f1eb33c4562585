"""In: what an `alter` wants, as a provider made it of a command line. Out: plans that need no
configuration. Must not know: how flags are parsed or plans shown.
"""
