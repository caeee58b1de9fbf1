"""What every task must hold to; a new file in tasks/ is tested without another line.

Those of a folder of your own are tested too when TOOLKIT_TASKS names it. A task whose data lies nowhere is skipped with
the reason: tests download nothing.
"""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tasks.describe import task_document
from tasks.registry import all_tasks, find_task
from tasks.task import Splits, Task
from toolkit.errors import UsageError
from toolkit.metrics import METRICS

OWN = os.environ.get("TOOLKIT_TASKS")
TASKS = all_tasks(Path(OWN) if OWN else None)

LARGE = (
    "ag_news",
    "sst2_phrases",
    "sst5_subtrees",
)  # more than 75,000 examples: seconds to read, and as many to read again
NAMES = [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in sorted(TASKS)]


@pytest.fixture(scope="module", params=NAMES)
def task(request) -> Task:
    return TASKS[request.param]


@pytest.fixture(scope="module")
def loaded(task, request, tmp_path_factory) -> tuple[Splits, bool]:
    """The examples, and whether they are from the first place, which the sizes are of."""
    if task.name == "imdb":
        pytest.skip("25,000 reviews take half a minute to split into tokens: see test_task_readers.py")
    if task.name == "chnsenticorp":
        pytest.importorskip("rjieba", reason="the zh extra is not installed")
    cache = tmp_path_factory.mktemp("cache")
    data = None if task.find(None, cache) else request.getfixturevalue("shared_data")
    path = task.find(data, cache)
    if path is None:
        pytest.skip(f"the data of {task.name} lies nowhere here")
    return task.load(data, cache), path == task.places[0][0].find(data, cache)


@pytest.fixture
def splits(loaded) -> Splits:
    return loaded[0]


def test_the_file_says_whose_the_data_is(task):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", task.name)
    for text in (task.title, task.licence, task.citation):
        assert text.strip() and "\n" not in text
    assert re.match("https?://", task.source)
    assert task.version >= 1
    assert len(set(task.labels)) == len(task.labels) >= 2
    assert task.metric in METRICS
    assert all(-1 < score < 1 for score in task.published.values())


def test_sizes_are_the_published_ones(task, loaded):
    splits, first_place = loaded
    assert len(splits.folds) == task.folds
    if first_place:
        assert splits.sizes == dict(task.sizes)
    else:
        assert all(splits.sizes.values())


def test_every_example_has_tokens_a_known_label_and_its_own_id(task, splits):
    for part in splits.parts().values():
        assert len({example.id for example in part}) == len(part)
        for example in part:
            for tokens in example.sentences:
                assert tokens and not any(re.search(r"[\s\x00-\x1f]", token) or not token for token in tokens)
            assert set(example.tags or (example.label,)) <= set(task.labels)


def test_every_example_is_of_the_kind_of_its_task(task, splits):
    for part in splits.parts().values():
        for example in part:
            assert len(example.sentences) == (2 if task.kind == "pair" else 1)
            assert len(example.tags) == (len(example.tokens) if task.kind == "tagging" else 0)
            assert bool(example.label) == (task.kind != "tagging")
            for position, tokens in zip(example.positions or (), example.sentences, strict=False):
                assert 0 <= position < len(tokens)


def test_every_label_is_in_every_split(task, splits):
    for part in splits.parts().values():
        assert {label for example in part for label in example.tags or (example.label,)} == set(task.labels)


def test_no_sentence_of_training_is_tested_on_but_those_that_were_published_so(task, loaded):
    splits, first_place = loaded
    if not first_place:
        pytest.skip("the numbers of repeated sentences are those of the first place")
    if splits.folds:
        folds = Counter(text for fold in splits.folds for text in {example.sentences for example in fold})
        repeated = {"all": sum(count > 1 for count in folds.values())}
    else:
        train = {example.sentences for example in splits.train}
        parts = {"dev": splits.dev, "test": splits.test}
        repeated = {name: sum(example.sentences in train for example in part) for name, part in parts.items()}
    assert {name: count for name, count in repeated.items() if count} == dict(task.repeated)


def test_every_example_is_tested_once_and_never_by_a_round_that_learned_it(splits):
    names = list(splits.parts())
    rounds = splits.rounds()
    assert sorted(one.test for one in rounds) == (sorted(names) if splits.folds else ["test"])
    for one in rounds:
        assert sorted((*one.train, one.dev, one.test)) == sorted(names)


def test_loading_again_gives_the_same(task, splits, request, tmp_path):
    data = None if task.find(None, tmp_path) else request.getfixturevalue("shared_data")
    assert task.load(data, tmp_path).fingerprint == splits.fingerprint


def test_places_say_where_they_are(task, tmp_path):
    document = task_document(task, None, tmp_path)
    assert document["places"] and all(place["place"] for place in document["places"])
    for place in document["places"]:
        if "file" in place:
            assert re.fullmatch("[0-9a-f]{64}", place["sha256"])
            assert place["bytes"] > 0


def test_absent_data_is_reported_as_absent(task, tmp_path):
    (tmp_path / "data").mkdir()
    path = task.find(tmp_path / "data", tmp_path / "cache")
    assert path is None or Path(path).exists()


def test_unknown_task_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'sst2'"):
        find_task("sst-2")
