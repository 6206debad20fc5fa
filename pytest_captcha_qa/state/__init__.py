"""Stores behind the ports StateStore and Limits, for one process, one machine or many."""
