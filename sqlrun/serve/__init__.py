"""The HTTP API: marts, dashboards and the operator's pages for owners.

Entry point: `command.serve_command`.
"""
