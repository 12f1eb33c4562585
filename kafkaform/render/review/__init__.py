"""The forms of a plan for its review: a comment in Markdown, a page in HTML.

In: a plan. Out: text that foreign names cannot break out of.

Must not know: HCL, systems, files, or any word that belongs to Kafka alone.
"""
