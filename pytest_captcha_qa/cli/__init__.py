"""The command `captcha-qa`: one command a file, each parses, calls and answers with an exit code."""
