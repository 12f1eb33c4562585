"""In: landing files, options of a run. Out: the tables of a build on Delta Lake, made in the order
of the datasets. Must not know: how answers and reports read them, command lines.
"""
