"""The HTTP server: the API of marts and dashboards, and the pages for owners and operators.

Entry point: `command.serve_command`.
"""
