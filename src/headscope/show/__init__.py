"""What people see: figures, the report, pages, the terminal, and objects that show themselves."""
