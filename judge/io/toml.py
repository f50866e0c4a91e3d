"""Options as TOML: one `key = value` a line, exact and byte-stable. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def toml_text(options: Mapping[str, Any]) -> str:
    r"""Keys of letters and hyphens with texts, numbers, booleans or lists of these, in the given order.

    Raises:
        ValueError: A text has no UTF-8, such as the name of a file in another encoding.

    >>> print(toml_text({"runs": ["a", 'b"c'], "depth": 2, "strict": True}), end="")
    runs = ["a", "b\"c"]
    depth = 2
    strict = true
    """
    text = "".join(f"{key} = {_value(value)}\n" for key, value in options.items())
    text.encode()
    return text


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(_value, value))}]"
    # JSON escapes all that TOML wants escaped, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
