"""What is measured: a model by name, A and Z of its heads while it runs, and the proof that they are right."""
