"""GitHub and GitLab on this computer: runners that execute pipeline files, and their APIs."""
