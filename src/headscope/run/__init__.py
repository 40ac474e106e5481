"""Running: shards, threads, processes, clusters, checkpoints and exact sums, for any consumer of A and Z."""
