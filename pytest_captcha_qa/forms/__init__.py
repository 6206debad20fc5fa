"""Opens the pages under test, finds the protected form on them, and submits it."""
