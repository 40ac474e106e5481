"""The explorer: a web application on this machine alone, for one text after the other."""
