"""The variables of the environment from which Ray takes how it behaves; its processes get them from this one."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "86400",
}
"""Variables without which Ray writes on the terminal, sends statistics, and ends a process that has lost the head."""
_HASTY = {"RAY_NUM_REDIS_GET_RETRIES": "1"}
"""Variables without which Ray looks for a head for minutes, where something else listens."""
_LOUD = ("RAY_LOG_TO_STDERR", "RAY_LOGGING_CONFIG_ENCODING", "RAY_BACKEND_LOG_LEVEL")
"""Variables with which Ray writes on the terminal, whatever its options say."""
AUTH_MODE = "RAY_AUTH_MODE"
"""The variable that says whether a cluster has a token."""
_OF_RAY = (AUTH_MODE, "PYTHONBREAKPOINT")
"""Variables that Ray sets itself."""
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
"""The variables that name a token."""
_FILE = "~/.ray/auth_token"
"""Where Ray looks for one last."""


@contextlib.contextmanager
def variables(*, own: bool) -> Iterator[None]:
    """Set what Ray needs before it is imported and until it ends, and put back what was there before.

    What the user has set is kept, unless it makes Ray write.

    Args:
        own: Whether a cluster is to be started, rather than found.
    """
    names = (*_QUIET, *_HASTY, *_LOUD, *_TOKENS, *_OF_RAY)
    before = {name: os.environ.get(name) for name in names}
    try:
        _set(own)
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _set(own: bool) -> None:
    for name, value in (_QUIET if own else _QUIET | _HASTY).items():
        os.environ.setdefault(name, value)
    for name in _LOUD:
        os.environ.pop(name, None)
    if own and not any(map(os.environ.get, _TOKENS)) and not _at_home():
        # Ray would leave one in the user's home.
        os.environ[_TOKENS[0]] = secrets.token_hex(32)


def _at_home() -> bool:
    try:
        return Path(_FILE).expanduser().exists()
    except (OSError, RuntimeError):
        # There is no home, or nobody may look into it.
        return False
