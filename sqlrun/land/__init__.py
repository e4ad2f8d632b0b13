"""Land new lines of sources as rows of landing tables; quarantine, replays and schema drift.

Entry point: `land.land`.
"""
