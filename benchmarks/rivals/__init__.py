"""Rivals of the suite: each folder has pinned requirements and the files that its users would write."""
