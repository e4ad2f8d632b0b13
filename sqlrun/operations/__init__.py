"""Care of a warehouse: the doctor, compaction and vacuum, rollback, verify.

Entry points: `doctor.at_start`, `maintenance.vacuum_held`, `verify.verify`.
"""
