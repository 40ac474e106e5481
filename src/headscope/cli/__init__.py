"""The command line: one file a verb. Reads options, calls the library, prints; no maths.

Heavy imports stand inside the commands, so that `headscope --help` is instant.
"""

import sys


def main() -> None:
    try:
        from headscope.cli.app import main as run
    except KeyboardInterrupt:
        # Nothing has begun yet, so there is nothing to tell.
        sys.exit(130)
    run()
