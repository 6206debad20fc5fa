"""The dashboard: one self-contained HTML file that says what changed since the last release."""
