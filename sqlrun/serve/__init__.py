"""The HTTP server: its API, and the pages for owners and operators.

Entry point: `command.serve_command`.
"""
