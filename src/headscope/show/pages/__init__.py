"""How a view is shown: in the terminal, in a notebook, on a page, as a picture."""
