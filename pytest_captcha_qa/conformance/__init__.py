"""Does the backend refuse what it must refuse? Probes as data, one function each; `runner` runs a family of them."""
