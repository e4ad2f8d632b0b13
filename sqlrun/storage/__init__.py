"""One interface to a warehouse's files: read, list, write atomically, delete and lock.

Entry points: `storage.Storage`, `factory.storage_of`, `lock.hold`. The engines read and write data files themselves.
"""
