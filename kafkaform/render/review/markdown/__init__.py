"""In: a plan. Out: the comment for its review, in the Markdown of GitHub and GitLab.

Must not know: HCL, systems, files, forges' APIs, or any word that belongs to Kafka alone.
"""
