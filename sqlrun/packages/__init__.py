"""Packages of dbt projects, fetched from git.

Entry point: `deps.fetch_all`. It reads no template and no SQL.
"""
