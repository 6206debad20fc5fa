"""Many solves in one process, as a run puts them together: what they cost, and that none is lost."""
