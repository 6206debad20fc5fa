"""Numbers in, numbers out: bounds, resampling by run, comparisons of samples (docs/statistics.md)."""
