"""Record files: one JSON object a line, written by allow-list and read without trust."""
