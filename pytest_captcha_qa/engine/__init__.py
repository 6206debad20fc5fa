"""One attempt from scope to record; knows no vendor, queue, file format or pytest."""
