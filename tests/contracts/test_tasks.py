"""What every task must hold to; a new file in tasks/ is tested without another line.

A task whose data lies nowhere is skipped with the reason: tests download nothing.
"""

import re
from pathlib import Path

import pytest

from tasks.describe import task_document
from tasks.registry import all_tasks, find_task
from tasks.task import Splits, Task
from toolkit.errors import UsageError

TASKS = all_tasks()


@pytest.fixture(scope="module", params=sorted(TASKS))
def task(request) -> Task:
    return TASKS[request.param]


@pytest.fixture(scope="module")
def splits(task, request, tmp_path_factory) -> Splits:
    cache = tmp_path_factory.mktemp("cache")
    if task.find(None, cache):
        return task.load(None, cache)
    data = request.getfixturevalue("shared_data")
    if not task.find(data, cache):
        pytest.skip(f"the data of {task.name} lies nowhere here")
    return task.load(data, cache)


def test_the_file_says_whose_the_data_is(task):
    assert re.fullmatch(r"[a-z][a-z0-9_]*", task.name)
    for text in (task.title, task.licence, task.citation):
        assert text.strip() and "\n" not in text
    assert task.source.startswith("https://")
    assert task.version >= 1
    assert len(set(task.labels)) == len(task.labels) >= 2
    assert all(0 < score < 1 for score in task.published.values())


def test_sizes_are_the_published_ones(task, splits):
    assert {name: len(part) for name, part in splits.parts().items()} == dict(task.sizes)


def test_every_example_has_tokens_a_known_label_and_its_own_id(task, splits):
    for part in splits.parts().values():
        assert len({example.id for example in part}) == len(part)
        for example in part:
            assert example.label in task.labels
            assert example.tokens
            assert not any(re.search(r"[\s\x00-\x1f]", token) or not token for token in example.tokens)


def test_every_label_is_in_every_split(task, splits):
    for part in splits.parts().values():
        assert {example.label for example in part} == set(task.labels)


def test_no_sentence_of_training_is_tested_on(splits):
    train = {example.tokens for example in splits.train}
    for part in (splits.dev, splits.test):
        assert sum(example.tokens in train for example in part) <= 0.01 * len(part)


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
