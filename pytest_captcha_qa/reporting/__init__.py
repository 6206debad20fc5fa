"""What a run comes to: exit code, verdict per form, terminal summary; read from record files only."""
