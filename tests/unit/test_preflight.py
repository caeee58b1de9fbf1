"""What a run says before its first step."""

import logging
from pathlib import Path

import pytest

from toolkit.config import resolve
from toolkit.memory import memory_available, memory_in_use
from toolkit.pretrain import preflight
from toolkit.pretrain.preflight import Pace, Preflight
from toolkit.pretrain.trainer import Trainer
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import prepare
from toolkit.text.vocab import Vocabulary

MIB = 2**20
LONG = "x" * 20


def trainer(folder: Path, **changes) -> Trainer:
    """20 sentences of 5 tokens to train on: one word a sentence outside the vocabulary, one longer than 10 bytes."""
    lines = [f"the cat saw w{number} {LONG if number % 2 else 'it'}" for number in range(20)]
    (folder / "text").mkdir(exist_ok=True)
    (folder / "text" / "train.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "text" / "valid.txt").write_text("the cat saw nothing it\n" * 3, encoding="utf-8")
    options = {
        "pretrain.preset": "tiny",
        "pretrain.batch_size": 4,
        "pretrain.unroll_steps": 4,
        "model.dim": 32,
        "model.projection_dim": 16,
        "model.filters": [(1, 8), (2, 8)],
        "model.max_characters_per_token": 12,
        "text.input": "tokenised",
        "paths.cache": folder / "cache",
    }
    chosen = resolve(Path(__file__).parents[2] / "config.toml", options | changes, environment={}).settings
    prepared = prepare([folder / "text"], None, chosen.text, 0.05, folder / "cache")
    return Trainer(prepared, Vocabulary.from_counts(prepared.words, prepared.counts, 100, 2), chosen)


def check(one: Trainer) -> Preflight:
    return preflight.check(one.graph, one.batches, one.prepared, one.lexicon, one.vocabulary, one.validation)


def test_coverage_is_counted_over_targets_types_and_tokens(tmp_path) -> None:
    found = check(trainer(tmp_path))
    assert found.outside_train == pytest.approx(20 / (100 + 20))  # w0 … w19, closing marks counted
    assert found.outside_valid == pytest.approx(3 / 18)
    assert found.cap == 10
    # the, cat, saw, it, the long one, 20 that are rare, and "nothing", which is in valid only
    assert found.cut_types == pytest.approx(1 / 26)
    assert found.cut_tokens == pytest.approx(10 / 100)


def test_a_word_that_just_fits_is_not_cut(tmp_path) -> None:
    assert check(trainer(tmp_path, **{"model.max_characters_per_token": len(LONG) + 2})).cut_types == 0


def test_a_model_that_reads_words_cuts_none_and_says_nothing_of_it(tmp_path) -> None:
    found = check(trainer(tmp_path, **{"model.input": "words"}))
    assert found.cut_types is None and "cut" not in " ".join(found.lines())


def test_the_estimate_grows_with_what_it_is_made_of(tmp_path) -> None:
    def memory(**changes):
        return check(trainer(tmp_path, **changes)).memory

    small = memory()
    batch = memory(**{"pretrain.batch_size": 12})
    assert batch["activations"] > small["activations"] and batch["weights"] == small["weights"]
    wide = memory(**{"model.dim": 128})
    assert wide["weights"] > 2 * small["weights"]
    assert wide["gradients"] > small["gradients"] and wide["optimizer slots"] == 2 * wide["weights"]


def test_weights_are_counted_exactly(tmp_path) -> None:
    one = trainer(tmp_path)
    variables = [*one.graph.bilm.trainable_variables, *one.graph.softmax]
    assert check(one).memory["weights"] == 4 * sum(v.shape.num_elements() for v in variables)


def test_too_little_memory_is_one_line_with_what_to_lower() -> None:
    memory = {"weights": 100 * MIB, "softmax logits": 900 * MIB}
    rest = (0.1, 0.1, 0.0, 0.0, 48)
    warning = Preflight(memory, 800 * MIB, *rest).warning()
    assert "about 1,000 MiB, 800 MiB are available: lower pretrain.negatives or pretrain.batch_size" in warning
    assert "\n" not in warning
    assert Preflight(memory, 1000 * MIB, *rest).warning() is None
    assert Preflight(memory, None, *rest).warning() is None


def test_every_part_has_an_advice(tmp_path) -> None:
    assert check(trainer(tmp_path)).memory.keys() == preflight.LOWER.keys()


def test_the_time_left_is_told_once_and_leaves_tracing_out() -> None:
    pace = Pace(tokens_per_step=100)
    seconds = [60.0] * Pace.SKIPPED + [0.5] * 30
    lines = [pace.line(second, 1000 - step, float("inf")) for step, second in enumerate(seconds, 1)]
    (line,) = filter(None, lines)
    assert lines.index(line) == Pace.SKIPPED + Pace.MEASURED - 1
    assert "8 min for 987 steps of 0.5 s (200 tokens/s)" in line


def test_a_limit_in_minutes_bounds_the_time_left() -> None:
    pace = Pace(tokens_per_step=100)
    lines = [pace.line(0.5, 1000, 60.0) for _ in range(13)]
    assert "60 s for 120 steps" in lines[-1]


def test_the_machine_tells_its_memory() -> None:
    assert memory_in_use() > 10 * MIB
    available = memory_available()
    if available is None:
        pytest.skip("this system does not tell what is available")
    assert available > 10 * MIB


def test_the_lines_stand_in_the_log_before_the_first_step(tmp_path, caplog) -> None:
    one = trainer(tmp_path, **{"pretrain.steps": 1})
    with caplog.at_level(logging.INFO), RunWriter.start(tmp_path / "runs", "pretrain", "x", one.all_settings, 1) as run:
        one.run(run)
    log = (run.folder / "log.txt").read_text()
    places = [log.index(text) for text in ("steps an epoch", "estimated peak memory", "coverage", "step 1: validation")]
    assert places == sorted(places)
    assert "100 tokens in 20 sentences = 7 steps an epoch (4 rows of 4); 1 steps = 0.143 epochs" in log
