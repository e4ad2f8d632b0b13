"""The version of sqlrun, in a module that imports nothing. Pure."""

__version__ = "0.1.0"
