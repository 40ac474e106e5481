"""The one exception that users meet."""


class HeadscopeError(Exception):
    """Something is wrong with what was asked for or given.

    The message is one sentence that names the file, line or option and says what to do.
    The command line prints it without a traceback and exits with code 2.
    """
