"""The composition root: joins settings, engine and adapters; the only importer of `provider`."""
