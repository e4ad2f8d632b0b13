"""How long things may take where no profile says otherwise. Pure."""

# Seconds that a statement may take.
STATEMENT_TIMEOUT = 1800
