"""The labels of a user's data: several spellings of one value are one class, and what is no label is refused."""

import logging
import math
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

logger = logging.getLogger(__name__)

NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d{0,300})(?:\.\d{1,300})?", re.ASCII)
SURROGATE = re.compile("[\ud800-\udfff]")


def label_text(value: Any) -> tuple[str, str]:
    """Return a label as text, white space as single blanks, and what is wrong with it ("" if nothing is)."""
    if isinstance(value, dict | list):
        return "", f"{value!r:.40} is no label"
    if isinstance(value, float) and not math.isfinite(value):
        return "", f"{value} is no label"
    try:
        text = "" if value is None else " ".join(str(value).split())
    except ValueError as error:  # an integer of thousands of digits
        return "", f"no label ({error})"
    if SURROGATE.search(text):
        return "", f"{text!r} holds half a surrogate pair, which is no character,"
    return text, "" if text else "no label"


def merged_spellings(labels: Sequence[str]) -> list[str]:
    """Return labels in which different spellings of one number (1, 1.0, +1) are one; each merge is logged.

    A number that has one spelling keeps it, and so do codes with leading zeros.
    """
    spellings: dict[str, set[str]] = {}
    for label in set(labels):
        spellings.setdefault(_value(label), set()).add(label)
    for value, found in spellings.items():
        if len(found) > 1:
            logger.warning("the labels %s are read as one class, %r", ", ".join(map(repr, sorted(found))), value)
    return [value if len(spellings[value := _value(label)]) > 1 else label for label in labels]


def _value(label: str) -> str:
    if not NUMBER.fullmatch(label):
        return label
    number = Decimal(label)
    text = format(number, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if number == 0 else text
