"""Text of languages without blanks between words, which blanks alone do not split into words."""

import importlib.util
import re
from collections import Counter
from collections.abc import Iterable

ENOUGH = 0.3  # share of the characters from which a text counts as of a script
SCRIPTS = {
    "Japanese": ("\u3040-\u30ff", "fugashi or SudachiPy"),
    "Thai": ("\u0e00-\u0e7f", "PyThaiNLP"),
    "Lao": ("\u0e80-\u0eff", "LaoNLP"),
    "Khmer": ("\u1780-\u17ff", "khmer-nltk"),
    "Burmese": ("\u1000-\u109f", "pyidaungsu"),
    "Chinese": ("\u3400-\u9fff", "the extra zh (rjieba)"),
}
PATTERNS = {name: re.compile(f"[{characters}]") for name, (characters, _) in SCRIPTS.items()}


def unsegmented(texts: Iterable[str], language: str) -> str | None:
    """Return a warning if raw text is of a language without blanks whose words are not going to be found.

    Args:
        texts: a sample.
        language: ISO 639 code of the tokenizer.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts["all"] += sum(not character.isspace() for character in text)
        for name, pattern in PATTERNS.items():
            counts[name] += len(pattern.findall(text))
    if counts["Japanese"] > ENOUGH / 3 * counts["all"]:  # kana stand among ideographs
        found = "Japanese"
    else:
        found = next((name for name in SCRIPTS if counts[name] > ENOUGH * counts["all"]), None)
    if found is None:
        return None
    chinese = language.lower().startswith("zh")
    if found == "Chinese":
        if chinese and importlib.util.find_spec("rjieba"):
            return None
        setting = "" if chinese else " and set text.language=zh"
        return f"the text looks Chinese and its words are not segmented: install {SCRIPTS[found][1]}{setting}"
    return (
        f"the text looks {found}, which has no blanks between words: tokens are whole phrases. "
        f"No extra segments it; do that first, e.g. with {SCRIPTS[found][1]}, and set text.input=tokenised"
    )
