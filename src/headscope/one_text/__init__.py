"""One text, looked at closely."""
