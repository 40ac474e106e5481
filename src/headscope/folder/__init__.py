"""The study folder: written, read, merged, verified. Reading needs neither torch nor transformers."""
