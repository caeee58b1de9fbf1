import itertools
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.text import tokenize
from toolkit.text.corpus import lines
from toolkit.text.tokenize import Tokenizer, detect_input, method

UNICODE = st.text(st.characters(exclude_categories=["Cs"]))
ENGLISH_LIKE = st.text(st.sampled_from("abAB.,;:!?'\"()-–“”… \t\n0123é中。"))


def test_raw_paragraphs_become_sentences_of_moses_tokens():
    sentences = Tokenizer("en", False, "raw").sentences(
        'He didn\'t see Mr. Smith & Co. (at "A&B"). It rained... again.'
    )
    assert sentences == [
        ["He", "didn", "'t", "see", "Mr.", "Smith", "&", "Co", ".", "(", "at", '"', "A", "&", "B", '"', ")", "."],
        ["It", "rained", "...", "again", "."],
    ]


def test_tokenised_lines_are_one_sentence_split_at_white_space():
    line = "Mr. Smith 's `` dog '' . It barked .\t<unk>\u00a0end\n"
    assert Tokenizer("en", False, "tokenised").sentences(line) == [line.split()]


def test_lower_casing_comes_after_splitting():
    raw = Tokenizer("en", True, "raw").sentences("Mr. Smith LEFT. He ran.")
    assert raw == [["mr.", "smith", "left", "."], ["he", "ran", "."]]


def test_blank_lines_have_no_sentence():
    assert Tokenizer("en", False, "raw").sentences(" \t\r\n") == Tokenizer("en", False, "tokenised").sentences("") == []


def test_a_word_of_ten_thousand_bytes_goes_through_unharmed():
    word = "x" * 10_000
    for kind in ("raw", "tokenised"):
        assert Tokenizer("en", False, kind).sentences(f"A {word} .") == [["A", word, "."]]


@pytest.mark.parametrize("language", ["en", "fr", "zh", "xx"])
@pytest.mark.parametrize("kind", ["raw", "tokenised"])
@settings(deadline=None)
@given(text=UNICODE | ENGLISH_LIKE)
def test_tokens_hold_no_white_space_and_no_text_is_lost(language, kind, text):
    sentences = Tokenizer(language, False, kind).sentences(text)
    tokens = [token for sentence in sentences for token in sentence]
    assert all(sentences)
    assert all(token and not any(c.isspace() or unicodedata.category(c) == "Cc" for c in token) for token in tokens)
    kept = [c for c in text if not c.isspace() and unicodedata.category(c) != "Cc"]
    assert "".join(tokens) == "".join(kept)


def test_chinese_words_come_from_rjieba():
    pytest.importorskip("rjieba", reason="the zh extra is not installed")
    assert Tokenizer("zh", False, "raw").sentences("我来到北京清华大学。你好吗？") == [
        ["我", "来到", "北京", "清华大学", "。"],
        ["你好", "吗", "？"],
    ]
    assert "rjieba" in method("zh-CN", "raw")


def test_chinese_without_rjieba_is_single_characters_and_said_so(monkeypatch):
    monkeypatch.setattr(tokenize.importlib.util, "find_spec", lambda name: None)
    sentences = Tokenizer("zh", False, "raw").sentences("我用 Python3。好！")
    assert sentences == [["我", "用", "Python3", "。"], ["好", "！"]]
    assert "single characters" in method("zh", "raw")


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("The cat sat, and slept. Then it ate.", "raw"),
        ("The cat sat , and slept .", "tokenised"),
        ("Mr. Smith of the U.S. Army sat , stood , and slept .", "tokenised"),
        ("Quoi ? Non ! Il dort, puis il mange.", "raw"),
        ("我来到北京，清华大学。", "raw"),
        ("我 来到 北京 ， 清华大学 。", "tokenised"),
        ("no marks at all", None),
        ("", None),
    ],
)
def test_tokenised_text_is_told_by_its_commas_and_full_stops(line, kind):
    assert detect_input([line]) == kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pretrain_wiki_en/train-00.txt.xz", "raw"),
        ("pretrain_misc/abc.txt.xz", "raw"),
        ("zh_wiki/zh_wiki.txt.xz", "raw"),
        ("pretrain_misc/brown.txt.xz", "tokenised"),
        ("pretrain_misc/masc.txt.xz", "tokenised"),
        ("wikitext2_eval/valid.txt", "tokenised"),
    ],
)
def test_published_corpora_are_told_apart(shared_data, name, kind):
    assert detect_input(itertools.islice(lines(shared_data / name), 2000)) == kind
