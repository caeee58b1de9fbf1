"""Characters that mean trouble in training text: unseen ones, look-alikes, traces of a wrong decoding."""

import functools
import re
import unicodedata
from typing import NamedTuple

REPLACEMENT = "\ufffd"
JOINERS = "\u200c\u200d"
ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")

# Letters that most typefaces draw exactly as a Latin one. Unicode's own list of confusables holds many more that a
# reader can tell apart (alpha and a, nu and v), which would flag μm, αB and νe in every scientific text. The package
# that carries the list, confusable-homoglyphs, has had no release since January 2024.
_LOOK_ALIKES = {
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u04bb\u04cf\u051b\u051d": "aeopcyxijsdhlqw",
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405": "ABEKMHOPCTYXIJS",
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf": "ABEZHIKMNOPTYXo",
    "\u0585\u057d\u0570\u0578\u0555": "ouhnO",
}
LATIN_OF = {letter: latin for row, latins in _LOOK_ALIKES.items() for letter, latin in zip(row, latins, strict=True)}

LETTERS = re.compile(r"[^\W\d_]+")
_TAGS = ("<font>", "<wide>", "<compat>")


def _windows(first: int, last: int) -> str:
    """Return a class of the characters that Windows-1252 reads for bytes; its five undefined ones as Latin-1."""
    text = "".join(
        bytes([byte]).decode("cp1252") if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(byte)
        for byte in range(first, last + 1)
    )
    return f"[{re.escape(text)}]"


_TAIL = _windows(0x80, 0xBF)
# UTF-8 read as Windows-1252: Latin-1 letters and signs, runs of Cyrillic, quotes and dashes, byte order mark, emoji.
MOJIBAKE = re.compile(rf"[ÂÃ]{_TAIL}|(?:[ÐÑ]{_TAIL}){{2,}}|â€{_TAIL}|ï»¿|ðŸ{_TAIL}{{2}}")


class Unseen(NamedTuple):
    """A character of a text that cannot be seen: its kind, how often it stands, and where first (from 0)."""

    kind: str
    count: int
    first: int


def unseen(text: str) -> dict[str, Unseen]:
    """Find the characters of a text that show nothing, or not what they are.

    Kinds: "encoding" (a lone surrogate, which stands for a byte that is not UTF-8), "replacement" (U+FFFD),
    "control", "invisible" (zero-width, soft hyphen, direction and byte order marks), "blank" (any but the space),
    "private" (private use or not assigned in Python's version of Unicode). Zero-width joiners are left out inside
    words of scripts that are spelled with them, and in emoji.
    """
    if text.isprintable() and REPLACEMENT not in text:
        return {}
    found = {}
    for character in dict.fromkeys(text):
        kind = _kind(character)
        if not kind:
            continue
        if character in JOINERS:
            places = [match.start() for match in re.finditer(character, text) if not _joins(text, match.start())]
            if places:
                found[character] = Unseen(kind, len(places), places[0])
        else:
            found[character] = Unseen(kind, text.count(character), text.index(character))
    return found


def name(character: str) -> str:
    """Return "U+00AD SOFT HYPHEN"; for a surrogate of `surrogateescape` "byte 0xe9"."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"byte 0x{code - 0xDC00:02x}"
    return f"U+{code:04X} {unicodedata.name(character, '')}".rstrip()


def shown(text: str, limit: int = 60) -> str:
    """Return a text in quotes, with escapes for what cannot be seen, cut after `limit` characters."""
    return repr(text if len(text) <= limit else text[:limit] + "…")


def look_alikes(word: str) -> str:
    """Say which letters of a word are of another script than the rest, though they look as if they belonged.

    Returns:
        "U+0430 CYRILLIC SMALL LETTER A among Latin letters", or "" where there is none. Letters that can be told
        apart (μm, kΩ) and scripts that meet at a hyphen or digit (β-carotene) are not meant.
    """
    if word.isascii():
        return ""
    for letters in LETTERS.findall(word):
        scripts = [_script(letter) for letter in letters]
        present = sorted(
            {script for script in scripts if script in ALPHABETS}, key=lambda s: (-scripts.count(s), s != "LATIN")
        )
        for guest in present[1:]:
            host = present[0]
            found = [
                letter
                for letter, script in zip(letters, scripts, strict=True)
                if script == guest and _latin(letter) in _drawn(host)
            ]
            if found:
                names = ", ".join(name(letter) for letter in dict.fromkeys(found))
                return f"{names} among {host.title()} letters"
    return ""


def latin_twin(word: str) -> str:
    """Return the Latin word that looks the same as a word of another script ("сор" gives "cop"), or ""."""
    if word.isascii() or not all(letter in LATIN_OF for letter in word):
        return ""
    return "".join(LATIN_OF[letter] for letter in word)


def letter_forms(word: str) -> str:
    """Name a word's ligatures, wide and mathematical letters and digits, and what each stands for, or return ""."""
    if word.isascii():
        return ""
    found = [character for character in dict.fromkeys(word) if _stands_for(character)]
    return ", ".join(f"{name(character)} for {_stands_for(character)!r}" for character in found)


def not_nfc(text: str) -> int | None:
    """Return the place, from 0, of the first character that Unicode form NFC changes; None where the text is in NFC."""
    if unicodedata.is_normalized("NFC", text):
        return None
    pairs = zip(text, unicodedata.normalize("NFC", text), strict=False)
    return next((place for place, (is_, should_be) in enumerate(pairs) if is_ != should_be), len(text))


@functools.cache
def _kind(character: str) -> str:
    if character == REPLACEMENT:
        return "replacement"
    if character.isprintable():
        return ""
    category = unicodedata.category(character)
    kinds = {"Cs": "encoding", "Cc": "control", "Cf": "invisible", "Zs": "blank", "Zl": "blank", "Zp": "blank"}
    return kinds.get(category, "private")


def _joins(text: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if not before or not after or before.isspace() or after.isspace():
        return False
    return not before.isascii() and _script(before) not in ALPHABETS


@functools.lru_cache(1 << 16)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").split(" ")[0]


@functools.lru_cache(1 << 16)
def _stands_for(character: str) -> str:
    tag = unicodedata.decomposition(character).partition(" ")[0]
    if tag not in _TAGS or unicodedata.category(character)[0] not in "LN":  # № is a sign in its own right
        return ""
    plain = unicodedata.normalize("NFKC", character)
    return plain if plain.isascii() and plain.isalnum() else ""


def _latin(letter: str) -> str:
    return LATIN_OF.get(letter, letter)


@functools.cache
def _drawn(script: str) -> frozenset[str]:
    """Return the Latin letters that a script has, or looks as if it had."""
    if script == "LATIN":
        return frozenset(LATIN_OF.values())
    return frozenset(latin for letter, latin in LATIN_OF.items() if _script(letter) == script)
