"""Asks the team's own backend, or the vendor with the team's secret, what a token was worth."""
