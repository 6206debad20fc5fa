"""QA of the CAPTCHA integration of your own staging forms, as a pytest plugin."""

__version__ = "0.1.0"
