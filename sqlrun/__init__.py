"""sqlrun keeps the answers of whole SQL queries true, tick after tick. Pure."""

__version__ = "0.1.0"
