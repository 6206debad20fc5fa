"""Frozen values the whole package talks in; standard library only."""
