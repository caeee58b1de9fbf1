"""What to advise about bytes that are not UTF-8: guesses at their encoding, which are called guesses."""

from charset_normalizer import from_bytes

from toolkit.text.characters import shown

# What text in the wild is in; the rarer ones would win many short samples by accident.
COMMON = [
    *("cp1252", "cp1251", "cp1250", "cp1253", "cp1254", "cp1255", "cp1256", "cp874"),
    *("gb18030", "big5", "cp932", "euc_jp", "cp949", "koi8_r"),
]
GUESSES = 5
AROUND = 12  # characters of the decoded sample that are shown


def advice(sample: bytes, at: int) -> str:
    """Return what to do about text that is not UTF-8: how to convert it, with the likely encodings as guesses.

    Args:
        sample: bytes of the text, some lines if possible.
        at: place of the first byte that is not UTF-8.
    """
    guesses = [match.encoding for match in from_bytes(sample, cp_isolation=COMMON)][:GUESSES]
    if not guesses:
        return "convert the file to UTF-8 from the encoding that it was written in"
    read = ", ".join(f"{name} {shown(_around(sample, at, name), AROUND)}" for name in guesses)
    return f"guesses at its encoding: {read}; convert the file with the one that reads right: iconv -f NAME -t utf-8"


def _around(sample: bytes, at: int, encoding: str) -> str:
    """Return the text from the beginning of the word with the byte on."""
    start = max(sample.rfind(mark, 0, at) for mark in (b" ", b"\n", b"\t")) + 1
    return sample[start : at + 4 * AROUND].decode(encoding, "replace").split("\n")[0]
