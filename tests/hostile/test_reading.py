"""Tables, tags and word vectors as they come: read right, or one line that says what is wrong, and nothing trained."""

import codecs
import json
import struct
from pathlib import Path

import numpy as np
import pytest

from tasks.adapter.vectorfile import vectors_of
from tasks.adapter.wordvectors import word_table
from tasks.own_data import Columns, own_task
from toolkit.config import Evaluate, Text
from toolkit.errors import FormatError

# No model is there: what is read right ends in the message about the model, after the data was read.
NO_MODEL = "nowhere"
ADJECTIVES = ("dull", "crisp", "noisy", "warm", "slow")


def texts(n: int = 40) -> list[str]:
    return [f"the scene number {i} felt {ADJECTIVES[i % 5]} , he said ." for i in range(n)]


def table(rows: list[tuple], separator: str = ",", header: tuple = ("text", "label")) -> str:
    quoted = '"{}"' if separator == "," else "{}"
    lines = [separator.join(header)]
    for text, *others in rows:
        lines.append(separator.join([quoted.format(text), *map(str, others)]))
    return "\n".join(lines) + "\n"


def labelled(labels: tuple = ("no", "yes"), n: int = 40) -> list[tuple]:
    return [(text, labels[i % len(labels)]) for i, text in enumerate(texts(n))]


def json_lines(rows: list[tuple]) -> str:
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)


def read(path: Path, **columns):
    task = own_task(path, Columns(**columns), Text())
    return task, task.load(None, path)


def n_rows(splits) -> int:
    return sum(splits.sizes.values())


ROWS = labelled()
MERGED = [('"stop ' + ROWS[0][0], "no"), *ROWS[1:20], (ROWS[20][0] + ' stop"', "no"), *ROWS[21:]]
GOOD = {
    "plain csv": ("a.csv", table(ROWS)),
    "tsv": ("a.tsv", table(ROWS, "\t")),
    "tab suffix": ("a.tab", table(ROWS, "\t")),
    "stray pair of quotes in tsv": ("a.tsv", table(MERGED, "\t")),
    "stray quote at the end of tsv": ("a.tsv", table([*ROWS[:-1], ('"' + ROWS[-1][0], "yes")], "\t")),
    "inches in tsv": ("a.tsv", table([*ROWS[:-1], ('5" screens are dull', "yes")], "\t")),
    "semicolons": ("a.csv", table(ROWS, ";").replace(" , ", " ")),
    "sep line": ("a.csv", "sep=;\n" + table(ROWS, ";")),
    "sep line of a bar": ("a.csv", "sep=|\n" + table(ROWS, "|")),
    "tabs in a .csv": ("a.csv", table(ROWS, "\t")),
    "vertical bars": ("a.csv", table(ROWS, "|")),
    "unnamed columns": ("a.csv", table([(*row, "", "", "") for row in ROWS], header=("text", "label", "", "", ""))),
    "blank names": ("a.csv", table([(*row, "", "") for row in ROWS], header=("text", "label", " ", " "))),
    "two columns of one name that are not read": (
        "a.csv",
        table([(*row, 1, 2) for row in ROWS], header=("text", "label", "x", "x")),
    ),
    "byte order mark": ("a.csv", "\ufeff" + table(ROWS)),
    "CRLF": ("a.csv", table(ROWS).replace("\n", "\r\n")),
    "CR alone": ("a.csv", table(ROWS).replace("\n", "\r")),
    "CR alone in tsv": ("a.tsv", table(ROWS, "\t").replace("\n", "\r")),
    "CR alone in JSON lines": ("a.jsonl", json_lines(ROWS).replace("\n", "\r")),
    "blank lines": ("a.csv", table(ROWS).replace("\n", "\n\n")),
    "JSON lines": ("a.jsonl", json_lines(ROWS)),
    "JSON lines after a blank one": ("a.ndjson", "\n" + json_lines(ROWS)),
    "surrogate in JSON text": ("a.jsonl", json_lines([("cut \ud83d here", "no"), *ROWS[1:]])),
    "labels with tabs": ("a.csv", table(labelled(('"bad\tfilm"', '"good\tfilm"')))),
    "one label with a tab": ("a.csv", table(labelled(("bad", '"good\tfilm"')))),
    "no-break blanks in labels": ("a.csv", table(labelled(("bad\u00a0film", "good film")))),
    "float labels": ("a.csv", table(labelled(("0", "1.0", "0.0", "1")))),
    "mixed labels": ("a.jsonl", json_lines(labelled((0, 1.0, "0", 1, 0.0, "1")))),
    "labels with a sign": ("a.csv", table(labelled(("+1", "-1.0", "1", "-1")))),
    "large labels": ("a.csv", table(labelled(("1" * 5000, "2")))),
}


@pytest.mark.parametrize("case", GOOD)
def test_a_table_is_read_whole_with_two_classes(tmp_path, case) -> None:
    name, content = GOOD[case]
    path = tmp_path / name
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    task, splits = read(path)
    assert (n_rows(splits), len(task.labels)) == (40, 2), (splits.sizes, task.labels)
    assert not any("\t" in label for label in task.labels)
    for part in splits.parts().values():
        for example in part:
            " ".join(example.tokens).encode()


BAD = {
    "NaN": ("a.jsonl", json_lines(labelled((0, float("nan")))), ("line 2 and 19 more", "nan is no label")),
    "infinity": ("a.jsonl", json_lines(labelled((0, float("inf")))), ("line 2", "inf is no label")),
    "list": ("a.jsonl", json_lines(labelled((0, [1]))), ("line 2", "[1] is no label")),
    "object": ("a.jsonl", json_lines(labelled((0, {"a": 1}))), ("line 2", "is no label")),
    "null": ("a.jsonl", json_lines(labelled((0, None))), ("line 2", "no label in column")),
    "surrogate in a label": ("a.jsonl", json_lines(labelled(("n\udc00o", "yes"))), ("line 1", "surrogate")),
    "text is a list": ("a.jsonl", json_lines([([1], "no"), *ROWS]), ("line 1", "holds [1], no text")),
    "number of 6,000 digits": ("a.jsonl", '{"text": "a", "label": ' + "1" * 6000 + "}\n", ("line 1", "no JSON")),
    "deep nesting": ("a.jsonl", "[" * 100_000 + "\n", ("line 1", "no JSON")),
    "JSON array": ("a.jsonl", "[1]\n", ("line 1", "list instead of an object")),
    "blank label": ("a.csv", table([(texts()[0], " "), *ROWS]), ("row 2", "no label")),
    "blank text": ("a.csv", table([(" ", "no"), *ROWS]), ("row 2", "column 'text' is empty")),
    "open quote": ("a.csv", table(ROWS) + '"open,no\n', ("line 42", "--no-quotes")),
    "a field too many": ("a.csv", table(ROWS) + "one, two,no\n", ("row 42", "3 fields", "--no-quotes")),
    "a field too many in tsv": ("a.tsv", table(ROWS, "\t") + "one\ttwo\tno\n", ("row 42", "3 fields", "--quotes")),
    "two columns of a name": ("a.csv", "text,text,label\na,b,c\n", ("two columns called 'text'",)),
    "no such column": ("a.csv", "text,lable\na,b\n", ("no column 'label'", "'lable'")),
    "empty": ("a.csv", "", ("is empty",)),
    "header alone": ("a.csv", "text,label\n", ("no row after its header",)),
    "sep line alone": ("a.csv", "sep=;\n", ("is empty",)),
    "one class": ("a.csv", table(labelled(("x",))), ("all 40 rows",)),
    "one class in two spellings": ("a.csv", table(labelled(("1", "1.0"))), ("all 40 rows have the label '1'",)),
    "UTF-16": ("a.csv", codecs.BOM_UTF16_LE.decode("latin-1") + "t\0e\0x\0t\0", ("UTF-16", "iconv -f utf-16")),
    "Latin-1": ("a.csv", table([("caf\xe9 au lait", "no"), *ROWS]), ("line 2, column 5", "guesses", "caf")),
    "other suffix": ("a.xlsx", "PK", ("its name should end in",)),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_table_is_refused_in_one_line(toolkit, tmp_path, case) -> None:
    name, content, parts = BAD[case]
    latin = case in ("UTF-16", "Latin-1")
    (tmp_path / name).write_bytes(
        content.encode("latin-1" if latin else "utf-8", "strict" if latin else "surrogatepass")
    )
    toolkit("evaluate", "--task", "csv", "--model", NO_MODEL, "--data", name).refused(name, *parts)


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--text2-column", "b", "--tag-column", "2"), ("--tag-column",)),
        (("--tag-column", "0"), ("a number from 1",)),
        (("--tag-column", "tag"), ("a number from 1", "'last'")),
        (("--tag-column", "2", "--text-column", "word"), ("--text-column 'word'",)),
        (("--tag-column", "2", "--no-quotes"), ("--tag-column",)),
        (("--text2-column", "second"), ("no column 'second'",)),
        (("--tag-column", "9"), ("line 1", "columns, at least 9")),
    ],
)
def test_options_that_do_not_fit_are_refused(toolkit, tmp_path, words, parts) -> None:
    (tmp_path / "a.csv").write_text(table(ROWS))
    toolkit("evaluate", "--task", "csv", "--model", NO_MODEL, "--data", "a.csv", *words).refused(*parts)


def test_a_name_that_is_not_utf8_is_refused(toolkit, tmp_path) -> None:
    name = "caf\udce9.csv"
    (tmp_path / name).write_text(table(ROWS))
    toolkit("evaluate", "--task", "csv", "--model", NO_MODEL, "--data", name).refused(r"caf\xe9.csv", "not UTF-8")
    toolkit("evaluate", "--task", "csv", "--model", NO_MODEL, "--data", ".").refused(r"caf\xe9.csv", "not UTF-8")
    (tmp_path / "caf\udce9.txt").write_text("a b .\n")
    toolkit("pretrain", "--corpus", "*.txt").refused(r"caf\xe9.txt", "not UTF-8")


WORDS = ("the", "bank", "river")
NUMBERS = np.array([[0.5, -1.0], [2.0, 0.25], [1.5, 3.0]], np.float32)
LINES = [f"{word} {a} {b}" for word, (a, b) in zip(WORDS, NUMBERS.tolist(), strict=True)]
BINARY = b"3 2\n" + b"".join(w.encode() + b" " + row.tobytes() + b"\n" for w, row in zip(WORDS, NUMBERS, strict=True))
GLOVE, WORD2VEC = "\n".join(LINES) + "\n", "\n".join(["3 2", *LINES]) + "\n"
READ = {
    "glove": ("v.txt", GLOVE.encode()),
    "word2vec": ("v.vec", WORD2VEC.encode()),
    "text called .bin": ("v.bin", WORD2VEC.encode()),
    "glove called .bin": ("v.bin", GLOVE.encode()),
    "binary": ("v.bin", BINARY),
    "binary called .vec": ("v.vec", BINARY),
    "binary without line ends": (
        "v.bin",
        BINARY[:4] + BINARY[4:].replace(b"\nbank", b"bank").replace(b"\nriver", b"river"),
    ),
    "mark before a header": ("v.vec", b"\xef\xbb\xbf" + WORD2VEC.encode()),
    "mark before a word": ("v.txt", b"\xef\xbb\xbf" + GLOVE.encode()),
    "tab after the word": ("v.txt", GLOVE.replace("the ", "the\t").encode()),
    "tabs everywhere": ("v.txt", GLOVE.replace(" ", "\t").encode()),
    "blanks at the ends": ("v.vec", WORD2VEC.replace("\n", " \n").encode()),
    "two blanks": ("v.txt", GLOVE.replace(" ", "  ").encode()),
    "CRLF": ("v.vec", WORD2VEC.replace("\n", "\r\n").encode()),
}


@pytest.mark.parametrize("case", READ)
def test_word_vectors_are_read_by_their_content(tmp_path, case) -> None:
    name, content = READ[case]
    (tmp_path / name).write_bytes(content)
    found = list(vectors_of(tmp_path / name))
    assert [word for word, _ in found] == list(WORDS)
    np.testing.assert_array_equal([vector for _, vector in found], NUMBERS)


REFUSED = {
    "NaN in text": (GLOVE.replace("0.25", "nan").encode(), r"line 2: number 2 is nan"),
    "1e30": (WORD2VEC.replace("0.25", "1e30").encode(), r"line 3: number 2 is 1e\+30"),
    "beyond float32": (WORD2VEC.replace("0.25", "1e39").encode(), r"line 3: number 2 is 1e\+39"),
    "infinity": (GLOVE.replace("0.25", "-inf").encode(), r"line 2: number 2 is -inf"),
    "NaN in binary": (BINARY.replace(struct.pack("<f", 0.25), struct.pack("<f", float("nan"))), r"word 2 \('bank'\)"),
    "1e30 in binary": (BINARY.replace(struct.pack("<f", 0.25), struct.pack("<f", 1e30)), r"word 2 .*1e\+30"),
    "fewer than the header says": (WORD2VEC.replace("3 2", "4 2").encode(), "says 4 words, it holds 3"),
    "more than the header says": (WORD2VEC.replace("3 2", "2 2").encode(), "says 2 words, it holds 3"),
    "other width than the header's": (WORD2VEC.replace("3 2", "3 3").encode(), "line 2: expected a word and 3 numbers"),
    "binary longer than it says": (BINARY.replace(b"3 2", b"2 2", 1), "does not end after the 2 words"),
    "binary cut": (BINARY[:-5], "ends within word 3 of 3"),
    "no number": (GLOVE.replace("0.25", "x").encode(), "line 2: expected a word and 2 numbers"),
    "blank line": (GLOVE.replace("\nbank", "\n\nbank").encode(), "line 2: a blank line"),
    "one number": (GLOVE.replace("2.0 ", "").encode(), "line 2: expected a word and 2 numbers, found"),
    "pickle": (b"\x80\x04\x95abc", "a Python pickle"),
    "zip": (b"PK\x03\x04abc", "a zip"),
    "HDF5": (b"\x89HDF\r\n\x1a\n", "HDF5"),
    "UTF-16": (GLOVE.encode("utf-16"), "UTF-16"),
    "NUL": (b"the 1\0 2\n", "neither text nor"),
    "empty": (b"", "is empty"),
    "header alone": (b"3 2\n", "is empty"),
    "header of noughts": (b"0 0\n", "holds nothing"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", ["v.bin", "v.vec"])
def test_damaged_word_vectors_are_refused_with_the_true_reason(tmp_path, name, case) -> None:
    content, message = REFUSED[case]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FormatError, match=message) as error:
        word_table(Evaluate(word_vectors=str(tmp_path / name), unknown_words="zeros"), [WORDS], None, 2)
    assert str(tmp_path / name) in str(error.value) and "\n" not in str(error.value)
