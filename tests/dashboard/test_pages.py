"""The pages, run by Streamlit's own test driver on empty, full and damaged stores."""

import ast
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from stores import broken_runs, evaluate_run, full_store, pretrain_run, senses_run, start_pretrain
from streamlit.testing.v1 import AppTest

from dashboard.tables import efficiency_frame, runs_frame
from toolkit.runs import schema
from toolkit.runs.compare import compare_runs
from toolkit.runs.notes import read_notes
from toolkit.runs.reader import list_runs, load_run

DASHBOARD = Path(__file__).resolve().parents[2] / "dashboard"
PAGES = ("views/runs.py", "views/compare.py", "views/senses.py", "views/run_detail.py")
Open = Callable[..., AppTest]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOOLKIT_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def open_page(page: str = PAGES[0], **query: str | list[str]) -> AppTest:
    """Open a page with a query in its URL; no page may end in a traceback."""
    app = AppTest.from_file(str(DASHBOARD / "app.py"), default_timeout=60)
    if page != PAGES[0]:
        app.switch_page(page)
    for key, value in query.items():
        app.query_params[key] = value
    return run(app)


def run(app: AppTest) -> AppTest:
    app.run()
    assert not app.exception
    return app


def ids(store: Path) -> list[str]:
    return [run.id for run in list_runs(store)]


def texts(app: AppTest) -> str:
    """Return everything that a page says in words."""
    parts = [*app.markdown, *app.caption, *app.subheader, *app.info, *app.warning, *app.error, *app.code]
    return "\n".join(str(part.value) for part in parts)


@pytest.mark.parametrize("page", PAGES)
def test_an_empty_store_says_what_to_do(store: Path, page: str) -> None:
    app = open_page(page)
    assert not app.error
    assert app.code or app.info


def test_the_empty_state_names_commands_that_exist(store: Path) -> None:
    from typer.main import get_command

    from toolkit.cli.main import app as commands

    root = get_command(commands)
    lines = [line for page in PAGES[:3] for code in open_page(page).code for line in code.value.splitlines()]
    assert len(lines) >= 5
    for line in lines:
        words = line.split()
        assert words[0] == "toolkit"
        command, rest = root, words[1:]
        while hasattr(command, "commands"):
            command, rest = command.commands[rest[0]], rest[1:]
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in rest if word.startswith("--")} <= known


@pytest.mark.parametrize("page", PAGES)
def test_every_page_shows_a_full_store(store: Path, page: str) -> None:
    full_store(store)
    app = open_page(page)
    assert not app.error
    assert app.dataframe


@pytest.mark.parametrize("page", PAGES)
def test_every_page_survives_a_damaged_store(store: Path, page: str) -> None:
    broken_runs(store)
    open_page(page)


def test_damaged_runs_are_listed_with_their_problem(store: Path) -> None:
    full_store(store)
    broken_runs(store)
    problems = next(table.value for table in open_page().dataframe if "problem" in table.value.columns)
    assert len(problems) == 6
    assert problems["problem"].str.contains("schema version 99").any()


def test_each_damaged_run_has_a_page_of_its_own(store: Path) -> None:
    for folder in broken_runs(store).values():
        app = open_page(PAGES[3], run=folder.name)
        assert app.selectbox(key="run").value == folder.name


def test_selected_runs_come_from_the_url_by_id(store: Path) -> None:
    full_store(store)
    wanted = ids(store)[2:4]
    app = open_page(runs=wanted)
    assert app.multiselect(key="runs").value == wanted
    assert app.get("vega_lite_chart")


def test_unknown_values_in_the_url_fall_back(store: Path) -> None:
    full_store(store)
    app = open_page(runs=["no-such-run", "../../etc"], runs_baseline="nobody", runs_kind="nothing")
    assert app.multiselect(key="runs").value == []
    app = open_page(PAGES[1], cmp_a="../x", cmp_outcome="y", cmp_differences="perhaps")
    assert not app.error
    app = open_page(PAGES[2], senses_word="zzz", senses_at="-5", senses_k="many")
    assert app.selectbox(key="senses_word").value == "bank"


def test_a_run_that_is_not_there_is_an_error_in_place(store: Path) -> None:
    full_store(store)
    app = open_page(PAGES[3], run="../../etc/passwd")
    assert "no run" in app.error[0].value


def test_ticked_rows_become_ids_and_stay_when_the_filter_hides_them(store: Path) -> None:
    full_store(store)
    app = open_page()
    app.multiselect(key="runs").set_value(ids(store)[:1])
    run(app)
    app.text_input(key="runs_search").set_value("wiki")
    run(app)
    assert app.multiselect(key="runs").value == ids(store)[:1]
    assert set(app.dataframe[0].value["name"]) == {"wiki-small", "wiki-tiny"}


def test_a_new_run_above_does_not_move_the_selection(store: Path) -> None:
    full_store(store)
    chosen = ids(store)[:2]
    app = open_page(runs=chosen)
    evaluate_run(store, "newest", n=20)
    run(app)
    assert app.dataframe[0].value["name"].iloc[0] == "newest-s1"
    assert app.multiselect(key="runs").value == chosen


def test_scores_of_other_tasks_and_texts_are_not_subtracted(tmp_path: Path) -> None:
    evaluate_run(tmp_path, "sst2-a", n=50)
    evaluate_run(tmp_path, "trec-a", n=50, task="trec")
    pretrain_run(tmp_path, "one", steps=5)
    other = pretrain_run(tmp_path, "two", steps=5) / schema.MANIFEST
    other.write_text(other.read_text().replace("c" * 16, "e" * 16))
    pretrain_run(tmp_path, "three", steps=5)
    runs = {run.name: run for run in list_runs(tmp_path)}
    for baseline, compared in (("sst2-a-s1", {"sst2-a-s1"}), ("one", {"one", "three"})):
        frame = runs_frame(list(runs.values()), runs[baseline]).set_index("name")
        assert {name for name, text in frame["vs baseline"].items() if text} == compared
    assert "They are of different text or vocabularies" in compare_runs([runs["one"]], [runs["two"]]).sentence
    assert "different" not in compare_runs([runs["one"]], [runs["three"]]).sentence


def test_a_baseline_adds_differences_of_the_same_metric_only(store: Path) -> None:
    full_store(store)
    baseline = next(run for run in list_runs(store) if run.name == "sst2-none-s1")
    table = open_page(runs_baseline=baseline.id).dataframe[0].value.set_index("name")
    assert table.loc["sst2-none-s1", "vs baseline"] == "baseline"
    assert table.loc["sst2-learned-s1", "vs baseline"].startswith("+")
    assert table.loc["wiki-small", "vs baseline"] == ""


def test_a_living_run_stands_in_the_strip_with_its_numbers(store: Path) -> None:
    with start_pretrain(store, "alive", 50, 0.4):
        said = texts(open_page())
    assert "Running now" in said
    assert "tokens/s" in said
    assert "Running now" not in texts(open_page())


def test_notes_are_saved_and_archived_runs_leave_the_list(store: Path) -> None:
    folder = evaluate_run(store, n=20)
    app = open_page(runs=[folder.name])
    app.text_input[-1].set_value("paper, old")
    app.text_area[0].set_value("*why*")
    next(toggle for toggle in app.toggle if toggle.label == "Archived").set_value(True)
    next(button for button in app.button if button.label == "Save").click()
    run(app)
    notes = read_notes(folder)
    assert (notes.tags, notes.note, notes.archived) == (("old", "paper"), "*why*", True)
    assert len(open_page().dataframe) == 0


def test_compare_says_the_sentence_of_the_command_line(store: Path) -> None:
    from toolkit.runs.compare import compare

    full_store(store)
    sentence = compare(store, "sst2-none", "sst2-learned").sentence
    assert sentence in texts(open_page(PAGES[1])).replace("\\", "")


def test_compare_draws_a_curve_where_runs_learned_from_parts_of_the_data(store: Path) -> None:
    full_store(store)
    assert "How many training examples" not in texts(open_page(PAGES[1]))
    for seed in (1, 2, 3):
        evaluate_run(store, "sst2-none-0.1-of-train", seed, 0.6, 872, mix="none", fraction=0.1)
    assert "How many training examples" in texts(open_page(PAGES[1]))
    runs = [load_run(run.folder) for run in list_runs(store) if run.kind == "evaluate"]
    none, learned = ([run.summary for run in runs if run.summary.title == f"sst2-{mix}"] for mix in ("none", "learned"))
    frame = efficiency_frame(none, learned, runs)
    found = frame.groupby(["side", "fraction"])["score"].agg(["count", "mean"])
    assert found["count"].to_dict() == {("A", 0.1): 3, ("A", 1.0): 3, ("B", 1.0): 3}
    assert found["mean"]["A", 0.1] < found["mean"]["A", 1.0] < found["mean"]["B", 1.0]


def test_compare_shows_differences_only_until_asked_for_all(store: Path) -> None:
    full_store(store)
    app = open_page(PAGES[1])
    settings = next(table.value for table in app.dataframe if "setting" in table.value.columns)
    assert settings.to_numpy().tolist() == [["evaluate.mix", "none", "learned"]]
    app.toggle(key="cmp_differences").set_value(False)
    run(app)
    everything = next(table.value for table in app.dataframe if "setting" in table.value.columns)
    assert len(everything) > 5
    assert not everything["setting"].str.contains("seed").any()


def test_the_examples_that_differ_are_shown_with_their_text(store: Path) -> None:
    full_store(store)
    table = open_page(PAGES[1], cmp_outcome="only A right").dataframe[-1].value
    assert (table["A says"] == table["gold"]).all()
    assert (table["B says"] != table["gold"]).all()
    assert table["text"].str.len().min() > 10


def test_two_runs_that_cannot_be_compared_say_why(store: Path) -> None:
    a, b = evaluate_run(store, "a", n=20), evaluate_run(store, "b", n=30, mix="none")
    app = open_page(PAGES[1], cmp_a=a.name, cmp_b=b.name)
    assert "evaluate both on the same data" in app.error[0].value


def test_neighbours_stand_in_a_column_a_layer_and_are_those_of_the_library(store: Path) -> None:
    from toolkit.senses.neighbours import load, neighbours

    folder = senses_run(store)
    occurrences = load(folder / schema.OCCURRENCES)
    app = open_page(PAGES[2], senses_word="spring", senses_at="3", senses_k="4")
    index = int(occurrences.of("spring")[2])
    table = app.dataframe[-1].value
    expected = [round(near.cosine, 4) for layer in range(3) for near in neighbours(occurrences, index, layer, 4)]
    assert table["cosine"].tolist() == expected
    headings = [element.value for element in app.markdown if element.value.startswith("#### Layer")]
    assert headings == ["#### Layer 0, the token", "#### Layer 1", "#### Layer 2"]
    assert app.get("vega_lite_chart")


def test_without_gold_senses_there_is_no_purity(store: Path) -> None:
    senses_run(store, labelled=False)
    app = open_page(PAGES[2])
    assert not app.get("vega_lite_chart")
    assert "badge" not in texts(app)


def test_an_occurrence_number_beyond_the_next_word_starts_again(store: Path) -> None:
    senses_run(store)
    app = open_page(PAGES[2], senses_word="spring", senses_at="34")
    assert app.number_input(key="senses_at").value == 34
    app.selectbox(key="senses_word").set_value("bank")
    run(app)
    assert app.number_input(key="senses_at").value == 1


def test_sentences_are_shown_as_they_stand(store: Path) -> None:
    senses_run(store)
    shown = next(element.value for element in open_page(PAGES[2]).markdown if "watched" in element.value)
    assert r"\*rise\*" in shown


def test_damaged_settings_are_an_error_in_place(store: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[evaluate]\nmixx = 1\n")
    app = open_page()
    assert "evaluate.mixx" in app.error[0].value.replace("\\", "")


def test_the_dashboard_never_loads_tensorflow(store: Path) -> None:
    full_store(store)
    code = f"""
import sys
from streamlit.testing.v1 import AppTest
for page in {PAGES!r}:
    app = AppTest.from_file({str(DASHBOARD / "app.py")!r}, default_timeout=60)
    app.switch_page(page).run()
    assert not app.exception, app.exception
assert "dashboard.data" in sys.modules
print([name for name in sys.modules if name.split(".")[0] in ("tensorflow", "keras")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[]\n"


def test_no_file_of_the_dashboard_hides_a_package_and_no_page_writes_html() -> None:
    files = list(DASHBOARD.rglob("*.py"))
    assert not {"toolkit", "tasks", "streamlit", "pages"} & {path.stem for path in DASHBOARD.glob("*") if path.is_dir()}
    assert not {"toolkit.py", "tasks.py", "streamlit.py"} & {path.name for path in files}
    for path in files:
        names = {node.arg for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.keyword)}
        assert "unsafe_allow_html" not in names, path
