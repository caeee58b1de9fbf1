"""A user's table and a user's task files: results, or one clear line."""

import csv
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from sklearn.metrics import f1_score

from tasks.adapter.majority import majority_of
from tasks.adapter.supported import check_supported
from tasks.catalogue import catalogue
from tasks.own_data import Columns, chosen_tasks, own_task
from tasks.registry import all_tasks, discover, find_task
from tasks.task import Example, Splits, Task
from toolkit.config import Evaluate, Settings, Text
from toolkit.errors import DataError, ToolkitError, UsageError

WORDS = ("the", "bank", "river", "money", "was", "good")


def made_up(n: int, classes: int) -> list[tuple[str, str]]:
    rng = random.Random(1)
    texts = [f'{" ".join(rng.choices(WORDS, k=4))}, he said "yes"\nand {number}.' for number in range(n)]
    return [(text, f"c{number % classes}") for number, text in enumerate(texts)]


def table(path: Path, rows: list[tuple], header: tuple = ("text", "label"), delimiter: str = ",") -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([header, *rows])
    return path


def loaded(path: Path, columns: Columns | None = None, text: Text | None = None) -> tuple[Task, Splits]:
    task = own_task(path, columns or Columns(), text or Text())
    return task, task.load(None, path)


def every(splits: Splits) -> list:
    return [example for part in splits.parts().values() for example in part]


@pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_separators_and_line_ends_in_quotes_are_text(suffix, delimiter, tmp_path):
    task, splits = loaded(table(tmp_path / f"my-Reviews.{suffix}", made_up(100, 3), delimiter=delimiter))
    assert (task.name, task.labels, len(every(splits))) == ("csv-my_reviews", ("c0", "c1", "c2"), 100)
    assert dict(task.sizes) == {"train": 80, "dev": 10, "test": 10}
    first = next(example for example in every(splits) if example.id == "row-2")
    assert first.tokens[4:] == (",", "he", "said", '"', "yes", '"', "and", "0", ".")


def test_json_lines_may_hold_numbers_as_labels(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"body": text, "y": int(label[1:])}) for text, label in made_up(50, 12)))
    task, _ = loaded(path, Columns("body", "y"))
    assert task.labels == tuple(map(str, range(12)))


def test_equal_texts_are_in_one_split_and_rows_keep_theirs_in_another_order(tmp_path):
    rows = made_up(60, 2) * 2
    _, splits = loaded(table(tmp_path / "a.csv", rows))
    places = {name: {e.tokens for e in part} for name, part in splits.parts().items()}
    assert not places["train"] & places["test"] and not places["train"] & places["dev"]
    _, turned = loaded(table(tmp_path / "b.csv", rows[::-1]))
    assert {name: {e.tokens for e in part} for name, part in turned.parts().items()} == places


def test_splits_come_from_a_column_and_dev_from_train_where_none_is(tmp_path):
    rows = [(*row, ("train", "Train", "training", "test")[number % 4]) for number, row in enumerate(made_up(80, 2))]
    _, splits = loaded(table(tmp_path / "a.csv", rows, ("text", "label", "part")), Columns(split="part"))
    assert splits.sizes == {"train": 54, "dev": 6, "test": 20}
    assert "a tenth of train" in splits.description


def test_splits_come_from_the_names_of_files_in_a_folder(tmp_path):
    rows = made_up(60, 2)
    for name, part in (("train", rows[:40]), ("valid", rows[40:50]), ("test", rows[50:])):
        table(tmp_path / f"{name}.csv", part)
    _, splits = loaded(tmp_path)
    assert splits.sizes == {"train": 40, "dev": 10, "test": 10}
    assert splits.test[0].id == "test-2"


def test_two_hundred_classes_and_a_class_with_one_example_are_read(tmp_path):
    task, splits = loaded(table(tmp_path / "a.csv", [*made_up(600, 200), ("alone", "rare")]))
    assert len(task.labels) == 201
    assert len(every(splits)) == 601


def test_label_that_training_lacks_is_told(tmp_path, caplog):
    rows = [(*row, "train") for row in made_up(30, 2)] + [("new", "rare", "test"), (*made_up(1, 2)[0], "test")]
    loaded(table(tmp_path / "a.csv", rows, ("text", "label", "split")), Columns(split="split"))
    assert "1 labels are in no training row and cannot be predicted, e.g. 'rare'" in caplog.text
    assert "1 of 2 test rows have the tokens of a training row" in caplog.text


def test_tokenised_text_is_split_at_blanks_alone(tmp_path):
    rows = [(f"it 's a film , number {i} , isn't .", f"c{i % 2}") for i in range(30)]
    _, splits = loaded(table(tmp_path / "a.csv", rows))
    assert "isn't" in splits.train[0].tokens and "tokenised text" in splits.description
    _, lower = loaded(table(tmp_path / "b.csv", made_up(30, 2)), text=Text(lowercase=True, input="raw"))
    assert all(token == token.lower() for example in every(lower) for token in example.tokens)


GOOD = "".join(f"text {i},c{i % 2}\n" for i in range(9))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + "no label,\nnone,\n", r"row 11 and 1 more: no label in column 'label'; fill it in or delete the row"),
        (GOOD + " ,c1\n", r"row 11: column 'text' is empty"),
        (GOOD + '"two\nlines",c1\n,c1\n', r"row 12 \(line 13\): column 'text' is empty"),
        (GOOD + "hello, you,c1\n", r"row 11: 3 fields, but the header has 2: put quotes"),
        (GOOD + '"open,c1\nmore,c1\n', r"line 11: .*is a quote opened there and not closed"),
        (GOOD + "caf\xe9,c1\n", r"line 11, column 4: byte 0xe9 is not UTF-8"),
        ("a,x\nb,x\n", r"all 2 rows have the label 'x': there is nothing to learn"),
        ("a,x\nb,y\nc,z\n", r"each of the 3 rows has a label of its own in 'label'"),
        ("a,x\na,y\na,x\n", r"too few different texts \(1\) to hold out test and dev"),
        ("", r"no row after its header"),
    ],
)
def test_bad_table_is_one_line_with_file_and_row(content, message, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(("text,label\n" + content).encode("latin-1"))
    with pytest.raises(DataError, match=message) as error:
        own_task(path, Columns(), Text())
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.csv", "text,lable\n", Columns(), r"no column 'label': did you mean 'lable'"),
        ("a.csv", "text:label\n", Columns(), r"it is the only one: separate the fields by commas"),
        ("a.xlsx", "", Columns(), r"its name should end in one of \.csv, \.tsv"),
        ("a.csv", "text,text,label\n", Columns(), r"two columns called 'text'"),
        ("a.csv", "", Columns(), r"is empty"),
        ("a.csv", "text,label,s\na,b,tset\n", Columns(split="s"), r"row 2: column 's' says 'tset', none of train, dev"),
        ("a.csv", "text,label,s\na,b,train\nc,d,train\na,b,dev\n", Columns(split="s"), r"has no test rows"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text"\n', Columns(), r"line 2: no JSON"),
        ("a.jsonl", '{"text": "a", "label": 1}\n[1]\n', Columns(), r"line 2: list instead of an object"),
        ("a.jsonl", '{"text": "a", "label": 1}\n{"text": 3, "label": 2}\n', Columns(), r"line 2: .*holds 3, no text"),
    ],
)
def test_wrong_table_or_column_is_one_line(name, content, columns, message, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(ToolkitError, match=message) as error:
        own_task(tmp_path / name, columns, Text())
    assert "\n" not in str(error.value)


def test_options_of_the_table_go_with_csv_alone(tmp_path):
    with pytest.raises(UsageError, match="go with --task csv, not 'sst2'"):
        chosen_tasks("sst2", Columns.given("a", None, None), Settings())
    with pytest.raises(UsageError, match="needs --data FILE"):
        chosen_tasks("csv", None, Settings())
    path = table(tmp_path / "a.csv", made_up(30, 2))
    settings = Settings.model_validate({"paths": {"data": path}})
    assert [task.name for task in chosen_tasks("csv, sst2,csv", None, settings)] == ["csv-a", "sst2"]


@pytest.mark.parametrize(
    ("name", "keys", "message"),
    [
        ("wic", {"head": "bilstm"}, "about pairs of sentences, not for head 'bilstm': use bcn, linear, pair"),
        ("ud_pos", {"head": "cnn"}, "about a label for each token, not for head 'cnn': use linear, tagger"),
        ("sst2", {"head": "tagger"}, "about single sentences"),
        ("sst2", {"head": "linear", "mix_at": "both"}, "no states for a mix at its output"),
    ],
)
def test_head_that_does_not_take_a_task_is_refused_in_one_line(name, keys, message):
    with pytest.raises(UsageError, match=message):
        check_supported(find_task(name), Evaluate(**keys))


def test_texts_that_differ_in_case_and_blanks_alone_are_in_one_split(tmp_path):
    rows = [(f"word{i // 3} is here , now .", f"c{i // 3 % 2}") for i in range(90)]
    rows = [((text, text.upper(), text.replace(" ", "  "))[i % 3], label) for i, (text, label) in enumerate(rows)]
    _, splits = loaded(table(tmp_path / "a.csv", rows))
    places = [{" ".join(e.tokens).lower() for e in part} for part in splits.parts().values()]
    assert len(set.union(*places)) == sum(map(len, places)) == 30 and sum(splits.sizes.values()) == 90


def test_texts_on_both_sides_of_named_files_and_contradictory_labels_are_counted(tmp_path, caplog):
    table(tmp_path / "train.csv", made_up(40, 2))
    table(tmp_path / "dev.csv", made_up(3, 2))
    again = [(text.upper(), label) for text, label in made_up(3, 2)]
    table(tmp_path / "test.csv", [*again[:2], (again[2][0], "c1"), ("new", "c0")])
    loaded(tmp_path)
    assert "3 of 4 test rows have the tokens of a training row" in caplog.text
    assert "3 of 3 dev rows" in caplog.text
    assert "1 texts have several labels" in caplog.text


@pytest.mark.parametrize(
    ("names", "sizes"),
    [
        (("reviews_2020_training.csv", "reviews_2020_valid.csv", "reviews_2020_testing.csv"), (40, 10, 10)),
        (("MyTrain.csv", "MyValidation.csv", "MyTest.csv"), (40, 10, 10)),
        (("a-train-00000-of-1.csv", "a.dev.csv", "a.test.csv"), (40, 10, 10)),
        (("contest.csv", "trainer.csv", "devices.csv"), (48, 6, 6)),
        (("one.csv", "two.csv", "three.test.csv"), (45, 5, 10)),
    ],
)
def test_a_part_is_recognised_anywhere_in_a_name_and_each_file_is_reported(tmp_path, names, sizes, caplog):
    caplog.set_level("INFO")
    rows = made_up(60, 2)
    for name, part in zip(names, (rows[:40], rows[40:50], rows[50:]), strict=True):
        table(tmp_path / name, part)
    _, splits = loaded(tmp_path)
    assert tuple(splits.sizes.values()) == sizes
    assert all(f"{tmp_path / name}: " in caplog.text for name in names)


def test_a_name_of_two_parts_is_refused(tmp_path):
    table(tmp_path / "train_test.csv", made_up(20, 2))
    with pytest.raises(UsageError, match=r"train_test\.csv names several parts"):
        loaded(tmp_path)


@pytest.mark.parametrize("names", [("test.part1.csv", "test.part2.csv"), ("test.csv", "test.tsv")])
def test_ids_of_several_files_of_one_part_are_distinct(tmp_path, names):
    table(tmp_path / "train.csv", made_up(40, 2))
    for name in names:
        table(tmp_path / name, made_up(20, 2), delimiter="\t" if name.endswith("tsv") else ",")
    _, splits = loaded(tmp_path)
    assert len({example.id for example in splits.test}) == len(splits.test) == 40


def test_a_task_with_an_id_twice_or_a_tab_in_a_label_is_refused_before_training(tmp_path):
    task, splits = loaded(table(tmp_path / "a.csv", made_up(40, 2)))
    twice = Splits(splits.train, splits.dev, [*splits.test, splits.test[0]], "twice")
    with pytest.raises(DataError, match="2 examples of test have the id"):
        replace(task, places=((task.places[0][0], lambda _: twice),)).load(None, tmp_path)
    with pytest.raises(DataError, match="holds a tab"):
        replace(task, labels=("a\tb", "c"))


def test_spellings_of_one_number_are_one_class_and_codes_stay(tmp_path, caplog):
    rows = [(text, ("1", "1.0", "1.50", "1.5", "007", "7", "x")[i % 7]) for i, (text, _) in enumerate(made_up(70, 2))]
    task, _ = loaded(table(tmp_path / "a.csv", rows))
    assert sorted(task.labels) == ["007", "1", "1.5", "7", "x"]
    assert "'1', '1.0' are read as one class, '1'" in caplog.text
    task, _ = loaded(table(tmp_path / "b.csv", [(text, f"{i % 2}.0") for i, (text, _) in enumerate(made_up(40, 2))]))
    assert task.labels == ("0.0", "1.0")


def test_a_second_text_column_makes_pairs(tmp_path, caplog):
    caplog.set_level("INFO")
    rows = [(text, f"again , {text}", label) for text, label in made_up(40, 2)]
    path = table(tmp_path / "a.csv", rows, ("text", "other", "label"))
    task, splits = loaded(path, Columns(second="other"))
    assert "not read" not in caplog.text
    loaded(path)
    assert f"{path}: columns that are not read: 'other'" in caplog.text
    assert task.kind == "pair" and all(example.second[:2] == ("again", ",") for example in every(splits))
    path = table(tmp_path / "b.csv", [*rows, ("alone", "", "c1")], ("text", "other", "label"))
    with pytest.raises(DataError, match=r"row 42.*column 'other' is empty"):
        loaded(path, Columns(second="other"))


CONLL = "".join(f"The DT O\nbank{i} NN B-ORG\nis VB O\n\n" for i in range(30))


@pytest.mark.parametrize(
    ("name", "content", "columns", "metric", "labels"),
    [
        ("a.conll", CONLL, Columns("1", tag="last"), "span_f1", ("B-ORG", "O")),
        ("a.conll", "-DOCSTART- -X- O\n\n" + CONLL, Columns("1", tag="2"), "accuracy", ("DT", "NN", "VB")),
        ("a.txt", CONLL.replace(" ", "\t").replace("\n", "\r\n"), Columns("1", tag="3"), "span_f1", ("B-ORG", "O")),
        (
            "a.conllu",
            "".join(f"# id {i}\n1-2\tx\t_\n1\tThe\tDT\n2\tbank{i}\tNN\n2.1\ty\t_\n3\tis\tVB\n\n" for i in range(30)),
            Columns("2", tag="3"),
            "accuracy",
            ("DT", "NN", "VB"),
        ),
    ],
)
def test_tags_are_read_from_the_columns_that_are_named(tmp_path, name, content, columns, metric, labels):
    (tmp_path / name).write_text(content)
    task, splits = loaded(tmp_path / name, columns)
    assert (task.kind, task.metric, task.labels) == ("tagging", metric, labels)
    assert splits.sizes == {"train": 24, "dev": 3, "test": 3}
    assert all(len(example.tokens) == len(example.tags) == 3 for example in every(splits))


@pytest.mark.parametrize(
    ("text", "language", "said"),
    [
        ("ฉันชอบภาพยนตร์เรื่องนี้มาก", "en", "looks Thai.*PyThaiNLP"),
        ("ខ្ញុំចូលចិត្តភាពយន្តនេះ", "km", "looks Khmer"),
        ("ဒီရုပ်ရှင်ကိုကြိုက်တယ်", "my", "looks Burmese"),
        ("この映画がとても好きです", "ja", "looks Japanese"),
        ("我很喜欢这部电影", "en", "looks Chinese.*zh.*text.language=zh"),
        ("un café très noir", "fr", None),
    ],
)
def test_text_without_blanks_between_words_is_reported(tmp_path, text, language, said, caplog):
    rows = [(f"{text} {i}", f"c{i % 2}") for i in range(30)]
    loaded(table(tmp_path / "a.csv", rows), text=Text(language=language, input="raw"))
    assert re.search(said, caplog.text) if said else not caplog.text


OWN = """
from tasks.data import Folder
from tasks.reading import label_first
from tasks.task import Example, Splits, Task

def read(folder):
    return Splits(*(label_first(folder / p, {"0": "no", "1": "yes"}, p) for p in ("train", "dev", "test")), "mine")

TASK = Task(
    name="NAME", version=1, title="Mine", metric="accuracy", labels=("no", "yes"), licence="mine", citation="none",
    source="https://example.org", sizes={"train": 2, "dev": 2, "test": 2},
    places=((Folder("mine", ("train", "dev", "test")), read),),
)
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """Task files: a good one, and others that break in their own ways."""
    (tmp_path / "my_tasks").mkdir()
    for name, text in {
        "mine": OWN.replace("NAME", "mine"),
        "sst2": OWN.replace("NAME", "sst2"),
        "csv": OWN.replace("NAME", "csv"),
        "other": OWN.replace("NAME", "mine"),
        "broken": "import nothing_of_that_name\n",
        "syntax": "TASK = (\n",
        "leaves": "raise SystemExit(3)\n",
        "number": "TASK = 3\n",
        "helper": "VALUE = 1\n",
        "_hidden": "raise ValueError\n",
    }.items():
        (tmp_path / "my_tasks" / f"{name}.py").write_text(text)
    return tmp_path / "my_tasks"


def test_task_file_of_the_user_is_one_of_the_tasks(folder, tmp_path):
    (tmp_path / "mine").mkdir()
    for part in ("train", "dev", "test"):
        (tmp_path / "mine" / part).write_text("1 yes\n0 no\n")
    splits = find_task("mine", folder).load(tmp_path, tmp_path)
    assert splits.sizes == {"train": 2, "dev": 2, "test": 2}
    assert set(all_tasks(folder)) == {*all_tasks(), "mine"}
    documents = {document["name"]: document for document in catalogue(tmp_path, tmp_path, folder)}
    assert documents["mine"]["path"] == str(tmp_path / "mine")


def test_broken_task_file_is_named_and_takes_no_other_down(folder, caplog):
    found = discover(folder)
    assert set(found.problems) == {"sst2", "csv", "other", "broken", "syntax", "leaves", "number"}
    all_tasks(folder)
    for name in ("broken", "syntax", "leaves", "number"):
        assert f"{folder / name}.py cannot be used as a task" in caplog.text
        with pytest.raises(UsageError, match=name) as error:
            find_task(name, folder)
        assert "\n" not in str(error.value)


def test_name_of_a_task_of_ours_is_refused_and_not_silently_ours(folder):
    with pytest.raises(UsageError, match=r"sst2\.py is called 'sst2', as a task of the toolkit is: rename"):
        find_task("sst2", folder)
    with pytest.raises(UsageError, match=r"csv\.py is called 'csv'"):
        find_task("csv", folder)
    assert all_tasks(folder)["sst2"] is all_tasks()["sst2"]
    with pytest.raises(UsageError, match=r"other\.py cannot be used as a task: its task is called 'mine'"):
        find_task("other", folder)


def test_missing_folder_of_tasks_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match=r"no folder of tasks at .*nowhere \(paths\.tasks"):
        all_tasks(tmp_path / "nowhere")


def test_own_data_has_the_metric_that_was_asked_for_and_its_majority(tmp_path):
    rows = [f"word{number} here,{'ham' if number % 10 else 'spam'}" for number in range(100)]
    path = tmp_path / "mail.csv"
    path.write_text("\n".join(["text,label", *rows]))
    plain, macro = (own_task(path, Columns(), Text(), *metric) for metric in ((), ("macro_f1",)))
    assert (plain.name, plain.metric, macro.name, macro.metric) == (
        "csv-mail",
        "accuracy",
        "csv-mail-macro_f1",
        "macro_f1",
    )
    splits = macro.load(None, tmp_path)
    share = sum(example.label == "ham" for example in splits.test) / len(splits.test)
    found = majority_of(splits, "macro_f1")
    assert (found["label"], found["rate"]) == ("ham", pytest.approx(share))
    assert found["score"] == pytest.approx(
        f1_score([e.label for e in splits.test], ["ham"] * len(splits.test), average="macro")
    )


def test_the_majority_of_tagged_tokens_is_a_tag():
    train = [Example("a", ("the", "cat"), tags=("DET", "NOUN")), Example("b", ("dogs",), tags=("NOUN",))]
    test = [Example("c", ("a", "dog", "runs"), tags=("DET", "NOUN", "VERB"))]
    found = majority_of(Splits(train, train, test, "made up"), "accuracy")
    assert found == {"label": "NOUN", "rate": pytest.approx(1 / 3), "score": pytest.approx(1 / 3)}
