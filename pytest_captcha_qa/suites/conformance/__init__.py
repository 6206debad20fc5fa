"""The conformance probes as a suite; collected with `--captcha-probes`."""
