"""Publication: the ledger of ticks, environments, and the tables of a published tick.

Entry points: `ledger.Ledger`, `reader.query`.
"""
