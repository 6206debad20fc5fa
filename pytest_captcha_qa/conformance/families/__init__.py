"""One module a family of probes; each lists its probes as data, with one function each."""
