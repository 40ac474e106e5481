"""The method: its definitions, what is seen of a batch, and one file a measure with all there is to know of it."""
