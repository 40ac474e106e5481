"""The command line: one file a verb. Reads options, calls the library, prints; no maths.

Heavy imports stand inside the commands, so that `headscope --help` is instant.
"""

from headscope.cli.app import main

__all__ = ["main"]
