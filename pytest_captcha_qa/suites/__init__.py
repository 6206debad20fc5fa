"""The suites a QA team runs, one module a captcha type; copy one and change it."""
