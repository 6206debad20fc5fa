"""Clients of the solving services: the protocol, the dialects as data, and the adapter over HTTP."""
