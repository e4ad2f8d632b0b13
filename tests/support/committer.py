"""`python -m tests.support.committer LOG COUNT WRITER`: commit to a log that others write; print what was told.

Each line of the result is a commit that the store acknowledged: (writer, number, version).
"""

from __future__ import annotations

import json
import sys
import uuid

from sqlrun.storage.factory import storage_of


def main(log: str, count: int, writer: int) -> None:
    storage, version, commits = storage_of(log), 0, []
    for number in range(count):
        while True:
            commit = {"writer": writer, "number": number, "version": version, "id": str(uuid.uuid4())}
            done = storage.put_if_absent(f"{log}/{version:020d}.json", json.dumps(commit).encode(), synced=True)
            version += 1
            if done:
                commits.append((writer, number, version - 1))
                break
    print(json.dumps(commits))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
