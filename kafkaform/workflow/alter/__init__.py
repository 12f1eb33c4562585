"""In: names and configs as KIP-248's `alter` takes them. Out: plans that need no configuration.
Must not know: how flags are parsed or plans shown.
"""
