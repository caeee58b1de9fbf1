import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.text.characters import ALPHABETS, LATIN_OF, MOJIBAKE, latin_twin, letter_forms, look_alikes, name, unseen


@pytest.mark.parametrize(
    ("character", "kind"),
    [
        ("\u00ad", "invisible"),
        ("\u200b", "invisible"),
        ("\ufeff", "invisible"),
        ("\u202e", "invisible"),
        ("\u00a0", "blank"),
        ("\u2028", "blank"),
        ("\x07", "control"),
        ("\x85", "control"),
        ("\ufffd", "replacement"),
        ("\ue000", "private"),
        ("\udce9", "encoding"),
    ],
)
def test_a_character_that_cannot_be_seen_is_counted_and_placed(character, kind):
    assert unseen(f"a{character}b{character}") == {character: (kind, 2, 1)}


@given(st.text())
def test_what_can_be_seen_is_never_reported(text):
    found = unseen(text)
    for character in text:
        if (unicodedata.category(character)[0] in "LMNPS" and character != "\ufffd") or character == " ":
            assert character not in found
        elif character not in "\u200c\u200d":
            assert found[character].count == text.count(character)
            assert text[found[character].first] == character


def test_joiners_belong_to_persian_words_and_emoji_but_not_to_latin_ones():
    assert unseen("می\u200cخواهم") == {}
    assert unseen("\U0001f468\u200d\U0001f469") == {}
    assert unseen("می\u200cخواهم wo\u200crd")["\u200c"] == ("invisible", 1, 11)
    assert unseen("می\u200c ")["\u200c"].count == 1


def test_every_look_alike_is_a_letter_of_another_alphabet():
    for letter, latin in LATIN_OF.items():
        assert unicodedata.name(letter).split()[0] in ALPHABETS[1:], letter
        assert (latin.isascii() and letter.isupper() == latin.isupper()) or letter == "\u04cf"


@pytest.mark.parametrize(
    ("word", "culprit"),
    [
        ("b\u0430nk", "U+0430"),
        ("Mосква", "U+004D"),
        ("\u0391lpha", "U+0391"),
        ("non-b\u0430nk", "U+0430"),
        ("\u0421\u0421\u0421P", "U+0050"),
    ],
)
def test_a_letter_of_another_script_is_named(word, culprit):
    assert look_alikes(word).startswith(culprit)


@pytest.mark.parametrize(
    "word", ["bank", "банк", "μm", "kΩ", "αB-crystallin", "β-carotene", "νe", "T-бонд", "naïve", "日本語text"]
)
def test_scripts_that_can_be_told_apart_are_no_look_alikes(word):
    assert look_alikes(word) == ""


@given(st.text(st.sampled_from(sorted(LATIN_OF)), min_size=1))
def test_a_word_of_look_alikes_has_a_latin_twin(word):
    twin = latin_twin(word)
    assert len(twin) == len(word) and twin.isascii()
    assert latin_twin(twin) == "" and latin_twin(word + "ж") == ""


@pytest.mark.parametrize(
    ("word", "plain"), [("\ufb01eld", "'fi'"), ("ｆull", "'f'"), ("\U0001d400", "'A'"), ("Ⅳ", "'IV'")]
)
def test_letters_in_another_dress_are_named(word, plain):
    assert plain in letter_forms(word)


@pytest.mark.parametrize("word", ["m²", "½", "™", "№", "é", "ß", "…"])
def test_signs_in_their_own_right_are_no_letter_forms(word):
    assert letter_forms(word) == ""


@pytest.mark.parametrize("text", ["café", "“so”", "Düsseldorf — Köln", "\U0001f600", "Привет"])
@pytest.mark.parametrize("encoding", ["cp1252", "latin1"])
def test_utf8_decoded_as_windows_text_is_recognised(text, encoding):
    data = text.encode("utf-8")
    if encoding == "cp1252":
        wrong = "".join(
            bytes([b]).decode("cp1252") if b not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(b) for b in data
        )
        assert MOJIBAKE.search(wrong)
    assert not MOJIBAKE.search(text)


@pytest.mark.parametrize("text", ["ÉTÉ»", "Spaß”", "SÃO", "à «", "Ñandú", "Ð", "Österreich"])
def test_accented_text_is_not_taken_for_wrongly_decoded_one(text):
    assert not MOJIBAKE.search(text)


def test_a_byte_is_named_by_its_value():
    assert name("\udce9") == "byte 0xe9"
    assert name("\u00ad") == "U+00AD SOFT HYPHEN"
    assert name("\x07") == "U+0007"
