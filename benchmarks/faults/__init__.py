"""Grades clients of solving services against everything that such a service can do wrong: `make faults`."""
