"""A tick, its scheduler, the session of ticks that a build is, and alerts.

Entry points: `tick.tick`, `session.Session`.
"""
