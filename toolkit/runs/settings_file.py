"""Settings as TOML: the few value types that the configuration has, written so that `tomllib` reads them back equal."""

import json
from typing import Any

from toolkit.config import Settings


def to_toml(settings: Settings) -> str:
    """Return every setting as TOML, one table a section; a setting without a value is a comment."""
    blocks = []
    for section, table in settings.model_dump(mode="json").items():
        lines = [f"[{section}]"]
        lines += [
            f"# {key} is not set" if value is None else f"{key} = {_value(value)}" for key, value in table.items()
        ]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, float):
        return repr(value)  # Python's shortest form is TOML's too, "inf" and "nan" included
    # JSON's strings, integers and booleans are TOML's, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
