"""Listeners: they watch what happens and change nothing."""
