"""Penn Treebank tokens as Moses tokens: what the Moses tokenizer itself makes of the same text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.text.tokenize import Tokenizer
from toolkit.text.treebank import moses_tokens

PAIRS = [
    ("It does n't work , ca n't you see ?", "It doesn't work, can't you see?"),
    ("We wo n't -LRB- yet -RRB- .", "We won't (yet)."),
    ("`` Yes , '' she said .", '"Yes," she said.'),
    ("it is n't that -lsb- sic -rsb- bad", "it isn't that [sic] bad"),
    ("John 's cats are n't here ; they 're out .", "John's cats aren't here; they're out."),
    ("He HAS N'T gone", "He HASN'T gone"),
]


@pytest.mark.parametrize(("treebank", "text"), PAIRS)
def test_they_equal_those_of_the_text(treebank, text) -> None:
    (expected,) = Tokenizer("en", False, "raw").sentences(text)
    assert moses_tokens(treebank.split()) == expected


@given(st.lists(st.text(min_size=1, max_size=6) | st.sampled_from(["n't", "``", "-LRB-", "ca", "\\/"])))
def test_there_are_always_as_many_tokens_and_none_is_empty(tokens) -> None:
    found = moses_tokens(tokens)
    assert len(found) == len(tokens) and all(found)
    assert moses_tokens(found) == moses_tokens(moses_tokens(found))


@pytest.mark.parametrize("text", ["I don 't know (yet) .", "n't", "1 n't", "-- and ..."])
def test_moses_tokens_and_what_is_no_negation_stay(text) -> None:
    assert moses_tokens(text.split()) == text.split()
