"""What the team says about its environments, forms and accounts, and which of several sources said it."""
