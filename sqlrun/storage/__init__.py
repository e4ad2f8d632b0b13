"""The files of a warehouse, wherever it lies: read, listed, written whole, deleted and locked through one interface.

Entry points: `storage.Storage`, `factory.storage_of`, `lock.hold`. The engines read and write data files themselves.
"""
