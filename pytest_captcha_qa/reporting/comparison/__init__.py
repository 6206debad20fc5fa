"""Release against release: what is compared with what, what was left out, and how it is told."""
