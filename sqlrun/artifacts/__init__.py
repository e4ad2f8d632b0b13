"""The manifest and the catalog of a project in dbt's format, for tools that read them.

`artifact_files.write_manifest` and `artifact_files.write_catalog` write them; `unique_ids` names the nodes, for the
results of a build as well.
"""
