"""What a hostile pull request, file, disk or name may try, and what becomes of it."""
