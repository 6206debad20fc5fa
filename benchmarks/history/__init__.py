"""Made-up history: record files of many runs and releases, for tests, simulations and measurements."""
