"""The families that headscope vouches for."""
