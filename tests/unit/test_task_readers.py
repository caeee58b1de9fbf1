"""Readers of published data: counts by class as published, and the first examples as they stand in the files."""

import io
import random
import sys
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from tasks import ag_news, chnsenticorp, imdb, sst5, sst5_subtrees, wic
from tasks.registry import find_task
from tasks.sst5_subtrees import phrases
from tasks.task import Example, Splits, in_folds
from toolkit.errors import DataError, UsageError
from toolkit.metrics import METRICS

# As the makers of each set, or the papers that use it, count them; two sets hold empty texts that no model can read.
PUBLISHED = {
    "sst5": {"very negative": 1510, "negative": 3140, "neutral": 2242, "positive": 3111, "very positive": 1852},
    "mr": {"negative": 5331, "positive": 5331},
    "subj": {"subjective": 5000, "objective": 5000},
    "cr": {"negative": 1368 - 2, "positive": 2407 - 2},
    "trec": {
        "abbreviation": 86 + 9,
        "description": 1162 + 138,
        "entity": 1250 + 94,
        "human": 1223 + 65,
        "location": 835 + 81,
        "number": 896 + 113,
    },
    "cola": {"unacceptable": 2528 + 162 + 162, "acceptable": 6023 + 365 + 354},
    "ag_news": dict.fromkeys(ag_news.LABELS.values(), 1900),
    "chnsenticorp": {"positive": 5322, "negative": 2444 - 1},
    "wic": {"same": 2714 + 319 + 700, "different": 2714 + 319 + 700},
}


def load(name: str, data: Path, cache: Path) -> Splits:
    if name == "chnsenticorp":
        pytest.importorskip("rjieba", reason="the zh extra is not installed")
    task = find_task(name)
    if task.find(data, cache) is None:
        pytest.skip(f"no data of {name} in {data}")
    return task.load(data, cache)


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_classes_have_the_published_counts(name, shared_data, tmp_path):
    splits = load(name, shared_data, tmp_path)
    assert Counter(e.label for part in splits.parts().values() for e in part) == PUBLISHED[name]


def test_words_of_the_treebank_have_the_published_counts(shared_data, tmp_path):
    splits = load("ud_pos", shared_data, tmp_path)
    words = [sum(len(example.tokens) for example in part) for part in splits.parts().values()]
    assert words == [204577, 25147, 25094]


def test_spans_of_wikiann_are_those_of_its_tags(shared_data, tmp_path):
    splits = load("wikiann_ner", shared_data, tmp_path)
    begun = Counter(tag for example in splits.train for tag in example.tags if tag.startswith("B-"))
    assert begun == {"B-LOC": 9345, "B-ORG": 9422, "B-PER": 9164}
    gold = [example.gold for example in splits.test[:500]]
    assert METRICS["span_f1"].values(gold, [gold])[0] == 1


def test_sentences_of_the_trees_are_those_of_sst5(shared_data, tmp_path):
    plain, trees = (load(name, shared_data, tmp_path) for name in ("sst5", "sst5_subtrees"))
    for part in ("dev", "test"):
        sides = (Counter((e.label, e.tokens) for e in splits.parts()[part]) for splits in (plain, trees))
        assert next(sides) == next(sides)
    phrases_of_train = {(example.label, example.tokens) for example in trees.train}
    missing = [e for e in plain.train if (e.label, e.tokens) not in phrases_of_train]
    assert len(missing) <= 5  # a "R ock" for "rock" in the trees, and sentences of dev and test


def test_positions_of_wic_point_at_the_word(shared_data, tmp_path):
    splits = load("wic", shared_data, tmp_path)
    first = splits.train[0]
    assert (first.tokens[first.positions[0]], first.second[first.positions[1]]) == ("carry", "carries")
    pairs = [(e.tokens[e.positions[0]], e.second[e.positions[1]]) for e in splits.test]
    assert sum(a[0].lower() == b[0].lower() for a, b in pairs) > 0.98 * len(pairs)


@pytest.mark.slow
def test_the_package_holds_the_training_reviews_of_imdb(tmp_path):
    splits = load("imdb", tmp_path, tmp_path)
    assert Counter(e.label for part in splits.parts().values() for e in part) == {"negative": 12500, "positive": 12500}
    assert not {e.tokens for e in splits.train} & {e.tokens for e in splits.test}


def tar(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def test_imdb_archive_is_read_without_unpacking_and_without_its_breaks(tmp_path):
    reviews = {
        f"aclImdb/train/{c}/{i}_{i}.txt": f"A {c} film.<br /><br />It's {i}." for c in ("neg", "pos") for i in range(9)
    }
    other = {"aclImdb/train/unsup/0_0.txt": "no label", "aclImdb/README": "x", "aclImdb/test/pos/0_9.txt": "Good."}
    splits = imdb.read_archive(tar(tmp_path / "aclImdb_v1.tar.gz", {**reviews, **other}))
    assert (len(splits.train) + len(splits.dev), len(splits.test)) == (18, 1)
    tokens = {e.id: e.tokens for e in (*splits.train, *splits.dev)}
    assert tokens["train-pos-3"] == ("A", "pos", "film", ".", "It", "'s", "3", ".")


def test_ag_news_archive_has_its_published_splits(tmp_path):
    row = '"{0}","Title {1}","One, two\\three ""four"" {1}."\n'
    texts = {part: "".join(row.format(i % 4 + 1, i) for i in range(n)) for part, n in (("train", 60), ("test", 8))}
    files = {f"ag_news_csv/{part}.csv": text for part, text in texts.items()}
    splits = ag_news.read_archive(tar(tmp_path / "ag_news_csv.tar.gz", files))
    assert (len(splits.train) + len(splits.dev), len(splits.test)) == (60, 8)
    assert splits.test[0].tokens == ("Title", "0", "One", ",", "two", "three", '"', "four", '"', "0", ".")


def test_damaged_archive_is_one_line(tmp_path):
    path = tmp_path / "aclImdb_v1.tar.gz"
    path.write_bytes(b"no archive")
    with pytest.raises(DataError, match=r"aclImdb_v1\.tar\.gz is not a readable archive"):
        imdb.read_archive(path)


def test_phrases_of_a_tree_are_its_nodes():
    assert phrases("(3 (2 Very) (4 (2 Good) (2 .)))") == [
        ("3", ("very", "good", ".")),
        ("2", ("very",)),
        ("4", ("good", ".")),
        ("2", ("good",)),
        ("2", (".",)),
    ]


@pytest.mark.parametrize("tree", ["", "(3 (2 a)", "(3 (2 a)))", "no tree", "(3 )", "(3 (2 a)) (2 b)"])
def test_damaged_tree_is_refused_with_its_line(tree, tmp_path):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.txt").write_text(f"(3 (2 a) (3 b))\n{tree}\n")
    with pytest.raises(DataError, match=r"dev\.txt, line 2: no tree"):
        sst5_subtrees.read(tmp_path)


def test_phrase_that_is_a_test_sentence_is_not_trained_on(tmp_path):
    (tmp_path / "train.txt").write_text("(3 (2 a) (4 (2 good) (3 film)))\n")
    (tmp_path / "dev.txt").write_text("(3 (2 a) (3 b))\n")
    (tmp_path / "test.txt").write_text("(4 (2 Good) (3 film))\n")
    splits = sst5_subtrees.read(tmp_path)
    assert ("good", "film") not in {example.tokens for example in splits.train}
    assert {example.label for example in splits.train} <= set(sst5.LABELS.values())


@pytest.mark.parametrize(
    ("row", "gold"), [("go\tV\t0-9\tgo on\tto go", "T"), ("go\tV\t0-1\tgo on\tto go", "X"), ("go\tV\t0\tgo\tgo", "T")]
)
def test_pair_without_its_positions_or_gold_is_refused_with_its_line(row, gold, tmp_path):
    for part in wic.PARTS:
        (tmp_path / part).mkdir()
        (tmp_path / part / f"{part}.data.txt").write_text(f"go\tV\t0-1\tgo on\tto go\n{row}\n")
        (tmp_path / part / f"{part}.gold.txt").write_text(f"F\n{gold}\n")
    with pytest.raises(DataError, match=r"train\.data\.txt, line 2"):
        wic.read(tmp_path)


def test_chinese_reviews_without_the_extra_name_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rjieba", None)  # as if it were not installed
    with pytest.raises(UsageError, match=r"pip install 'elmo-toolkit\[zh\]'"):
        chnsenticorp.read(tmp_path)


def test_fold_of_a_sentence_stays_when_others_come(tmp_path):
    found = [Example(f"x-{i}", (f"word{i % 40}",), "a") for i in range(80)]
    few, many = in_folds(found[:50], ""), in_folds(found, "")
    for fold, larger in zip(few.folds, many.folds, strict=True):
        assert {e.id for e in fold} <= {e.id for e in larger}
    places = {e.tokens: number for number, fold in enumerate(many.folds) for e in fold}
    assert all(places[e.tokens] == number for number, fold in enumerate(many.folds) for e in fold)


# f1_score of seqeval 1.2.2 on the tags that random_tags makes. It is no dependency: its last release is of 2020.
SEQEVAL = {0: 0.6022099447513812, 1: 0.6909975669099757, 2: 0.6325581395348837, 3: 0.5651105651105651}


def random_tags(seed: int) -> tuple[list[str], list[str]]:
    rng = random.Random(seed)
    gold, predicted = [], []
    for _ in range(60):
        tags = ["O", "B-PER", "I-PER", "B-ORG", "I-ORG"]
        length = rng.randint(1, 9)
        gold.append(rng.choices(tags, k=length))
        predicted.append([tag if rng.random() < 0.6 else rng.choice(tags) for tag in gold[-1]])
    return ["\t".join(tags) for tags in gold], ["\t".join(tags) for tags in predicted]


@pytest.mark.parametrize("seed", sorted(SEQEVAL))
def test_span_f1_of_random_tags_is_that_of_seqeval(seed):
    gold, predicted = random_tags(seed)
    assert METRICS["span_f1"].values(gold, [predicted])[0] == pytest.approx(SEQEVAL[seed], abs=1e-12)
