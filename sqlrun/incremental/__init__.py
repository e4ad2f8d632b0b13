"""From a query to its change: one rule for each operator. Pure."""
