"""A tick, its scheduler, the session of a build's ticks, and alerts.

Entry points: `tick.tick`, `session.Session`.
"""
