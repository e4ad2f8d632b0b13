"""A warm server: commands run in forks of a process that has the libraries loaded and Spark started. Pure."""
