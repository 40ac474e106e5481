"""Where shards run: in this process, in several, or on a Ray cluster."""
