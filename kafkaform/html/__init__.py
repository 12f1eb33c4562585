"""HTML pages that are one file and load nothing: no address, no image, no font.

In: templates and values. Out: one page. Must not know: plans, reports, or any word of theirs.
"""
