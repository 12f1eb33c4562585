"""In: a plan. Out: the page for its review, one HTML file.

Must not know: HCL, systems, files, or any word that belongs to Kafka alone.
"""
