"""The command line: one file a verb. Reads options, calls the library, prints; no maths.

Heavy imports stand inside the commands, so that `headscope --help` is instant.
"""

import _thread
import atexit
import gc
import os
import signal
import sys
import threading
from contextlib import suppress


def main() -> None:
    sys.unraisablehook = _interrupt_again
    # What numpy multiplies here is small: two threads of its library wait for each other, and take the core of a helper
    # that draws. It looks when it is loaded, and so do those of the processes that are started here.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # At its end Python looks for garbage once more: among millions of objects of figures, half a second for nothing.
    atexit.register(gc.freeze)
    try:
        from headscope.cli.app import main as run
    except KeyboardInterrupt:
        # Nothing has begun yet, so there is nothing to tell.
        sys.exit(130)
    run()


def _interrupt_again(what: "sys.UnraisableHookArgs") -> None:
    """What Python does with an error that it can't raise, as one in a weak reference's callback: it prints it and goes
    on. An interrupt that comes there would be lost with a traceback; it comes once more, a little later."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)
        return
    with suppress(RuntimeError):  # The interpreter is ending: nothing is left to interrupt.
        later = threading.Timer(0.05, _interrupt)
        later.daemon = True
        later.start()


def _interrupt() -> None:
    """The main thread, and where that can be what it waits for."""
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)
    else:
        _thread.interrupt_main()
