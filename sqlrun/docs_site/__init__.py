"""The documentation of a project as a folder of static files.

`site_files.write` writes it: a page, the viewers that it is built on, and the facts of each node as a script of its
own, because a page that a browser opens from disk can load scripts and no other data. `index.index` has what the page
needs at its start, `nodes.Pages` the facts of each node.
"""
