"""The command `captcha-qa`: a command a file, imported when asked for; each parses, calls and answers an exit code."""
