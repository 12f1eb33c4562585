"""A pipeline for kafkaform: plan a pull request, apply the reviewed plan, report drift.

`action.yml` (GitHub Actions) and `templates/kafkaform.yml` (GitLab CI) start it.
"""
