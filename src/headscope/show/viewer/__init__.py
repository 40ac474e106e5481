"""The viewer: one page for one text in every head, from a server, in a file, in a notebook or within a report."""
