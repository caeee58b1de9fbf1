import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import FormatError, UsageError
from toolkit.text.vocab import BOS, EOS, UNK, Vocabulary

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=12)


def write(tmp_path, data: bytes):
    path = tmp_path / "vocab.txt"
    path.write_bytes(data)
    return path


def test_special_tokens_come_first_and_words_by_frequency():
    vocabulary = Vocabulary.from_counts(["b", "a", "c"], [5, 9, 5], size=10, min_count=1)
    assert vocabulary.words == [BOS, EOS, UNK, "a", "b", "c"]
    assert [vocabulary.id(word) for word in (BOS, EOS, UNK, "c")] == [0, 1, 2, 5]


def test_size_includes_the_special_tokens():
    assert len(Vocabulary.from_counts(list("abcdef"), [6, 5, 4, 3, 2, 1], size=5, min_count=1)) == 5


def test_words_that_look_like_special_tokens_neither_repeat_them_nor_cost_a_place():
    vocabulary = Vocabulary.from_counts([UNK, "a", BOS, "b"], [9, 8, 7, 6], size=5, min_count=1)
    assert vocabulary.words == [BOS, EOS, UNK, "a", "b"]


def test_rare_words_are_left_out():
    assert Vocabulary.from_counts(["a", "b", "c"], [3, 2, 1], size=9, min_count=2).words[3:] == ["a", "b"]


def test_a_corpus_of_rare_words_only_says_what_to_lower():
    with pytest.raises(UsageError, match=r"vocabulary\.min_count = 2"):
        Vocabulary.from_counts(["a"], [1], size=9, min_count=2)


def test_unknown_words_get_the_id_of_unk():
    assert Vocabulary([BOS, EOS, UNK, "a"]).id("zebra") == 2


def test_a_published_file_keeps_its_own_order(tmp_path):
    vocabulary = Vocabulary.load(write(tmp_path, b"</S>\n<S>\n<UNK>\n!!!MAXTERMID\nthe\n"))
    assert vocabulary.words == [EOS, BOS, UNK, "the"]
    assert vocabulary.id("the") == 3


def test_only_the_line_feed_ends_a_line(tmp_path):
    data = "<S>\r\n</S>\n<UNK>\n\u00a0\n\u2028\na\u0085b".encode()
    assert Vocabulary.load(write(tmp_path, data)).words[3:] == ["\u00a0", "\u2028", "a\u0085b"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<S>\n</S>\n<UNK>\na\nb\na\n", "line 6: 'a' stands on line 4"),
        (b"<S>\n</S>\n<UNK>\n\na\n", "line 4 is blank"),
        (b"<S>\na\n", "lacks </S>, <UNK>"),
        (b"", "line 1 is blank"),
        (b"<S>\n</S>\n<UNK>\ncaf\xe9\n", "line 4: byte 0xe9 is not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place(tmp_path, data, message):
    with pytest.raises(FormatError, match=message):
        Vocabulary.load(write(tmp_path, data))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FormatError, match=r"gone\.txt is missing"):
        Vocabulary.load(tmp_path / "gone.txt")


@settings(deadline=None)
@given(st.lists(WORDS, unique=True, max_size=20))
def test_save_and_load_keep_every_word(tmp_path_factory, words):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    vocabulary = Vocabulary([BOS, EOS, UNK, *(word for word in words if word not in (BOS, EOS, UNK, "!!!MAXTERMID"))])
    vocabulary.save(path)
    assert Vocabulary.load(path).words == vocabulary.words
    assert list(path.parent.iterdir()) == [path]
