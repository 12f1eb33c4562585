"""In: rows that landed and other datasets. Out: a module for each dataset: the function that makes
its rows. Must not know: when and in which order datasets are made, how rows are stored or shown.
"""
