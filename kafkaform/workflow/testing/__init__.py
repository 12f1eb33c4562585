"""In: a configuration, and test files. Out: how each run of them ended, on simulated systems.
Must not know: real systems, states and logs on a disk, how results are shown.
"""
