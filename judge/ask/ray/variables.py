"""The variables of the environment from which Ray takes how it behaves; its processes get them from this one."""

import os
import secrets
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
_TOKENS = ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
"""The variables that name a token."""
_FILE = "~/.ray/auth_token"
"""Where Ray looks for one last."""


def set_variables(*, own: bool) -> None:
    """Set what Ray needs before it is imported; what the user has set is kept, unless it makes Ray write.

    Args:
        own: Whether a cluster is to be started, rather than found.
    """
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
