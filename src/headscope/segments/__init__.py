"""Texts cut into segments: topics, by the vectors of their sentences, and sentence-like units, by attention lines."""
