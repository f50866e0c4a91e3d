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
_BREAKPOINT = "PYTHONBREAKPOINT"
"""A variable that Ray sets, although it has another name."""
AUTH_MODE = "RAY_AUTH_MODE"
"""The variable that says whether a cluster has a token."""
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
    before = _of_ray()
    try:
        _set(own)
        yield
    finally:
        # Ray sets some itself.
        for name in _of_ray().keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


def _set(own: bool) -> None:
    for name, value in (_QUIET if own else _QUIET | _HASTY).items():
        os.environ.setdefault(name, value)
    for name in _LOUD:
        os.environ.pop(name, None)
    if own and not any(map(os.environ.get, _TOKENS)) and not _at_home():
        # Ray would leave one in the user's home.
        os.environ[_TOKENS[0]] = secrets.token_hex(32)


def _of_ray() -> dict[str, str]:
    """The variables that Ray reads or sets."""
    return {name: os.environ[name] for name in os.environ if name.startswith("RAY_") or name == _BREAKPOINT}


def _at_home() -> bool:
    try:
        return Path(_FILE).expanduser().exists()
    except (OSError, RuntimeError):
        # There is no home, or nobody may look into it.
        return False
