"""A server that keeps Python and Spark warm and forks a process for each command.

Entry points: `client.handed_over`, `server.main`.
"""
