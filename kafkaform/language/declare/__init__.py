"""In: the files of a folder. Out: what the folder declares: blocks by name and address, variables
with their values, the tree of modules; expressions stay unevaluated.
Must not know: instances of blocks, schemas of resource types, live objects.
"""
