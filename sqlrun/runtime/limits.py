"""Default time limits. Pure."""

# Maximum seconds of a statement.
STATEMENT_TIMEOUT = 1800
