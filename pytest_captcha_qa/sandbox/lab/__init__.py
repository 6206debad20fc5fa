"""Forms for conformance: sound ones, and for each mistake a backend can make one form with that mistake only.

They are served under `/lab` and linked nowhere; the numbers are those of the probes that look for the mistakes.
"""
