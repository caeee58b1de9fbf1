"""Run stores for tests: real-format runs, written by the real writer, with made-up numbers; and broken ones."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from toolkit.config import Settings
from toolkit.metrics import METRICS
from toolkit.runs import schema
from toolkit.runs.notes import Notes, write_notes
from toolkit.runs.reader import list_runs
from toolkit.runs.writer import RunWriter
from toolkit.senses.occurrencefile import save
from toolkit.senses.sources import Occurrence

OPENINGS = (
    "A moving story about",
    "The film never finds",
    "It is hard to forget",
    "Nothing here beats",
    "Too long by half:",
)
ENDINGS = (
    "its two leads.",
    "the bank of the river *at dawn*.",
    "a plot worth $10.",
    "what [it] wants to say.",
    "the cast.",
)


def settings_with(**changes: object) -> Settings:
    """Return the default settings with some changed: `settings_with(evaluate__mix="none")`."""
    settings = Settings()
    for name, value in changes.items():
        section, key = name.split("__")
        table = getattr(settings, section).model_copy(update={key: value})
        settings = settings.model_copy(update={section: table})
    return settings


def evaluate_run(
    store: Path,
    name: str = "sst2-learned",
    seed: int = 1,
    accuracy: float = 0.8,
    n: int = 200,
    mix: str = "learned",
    task: str = "sst2",
    model: str = "0123456789abcdef",
    ids: list[str] | None = None,
    minutes_ago: float = 0.0,
    fraction: float = 1.0,
) -> Path:
    """Write a finished evaluate run; easy examples are right in every run, so that pairs agree as real ones do."""
    rng = np.random.default_rng([seed, len(name), int(accuracy * 1000)])
    ids = ids or [f"test-{i:04d}" for i in range(n)]
    hardness = np.random.default_rng(5).random(len(ids))
    gold = np.where(np.random.default_rng(6).random(len(ids)) < 0.5, "positive", "negative")
    right = hardness + rng.normal(0, 0.15, len(ids)) < accuracy
    other = np.where(gold == "positive", "negative", "positive")
    predicted = np.where(right, gold, other)
    settings = settings_with(evaluate__mix=mix, evaluate__train_fraction=fraction)
    with RunWriter.start(store, "evaluate", f"{name}-s{seed}", settings, seed, model, "d" * 16, {"task": task}) as run:
        for epoch in range(8):
            level = accuracy * (1 - 0.35 * np.exp(-epoch / 1.5))
            run.metric("loss", 0.7 * np.exp(-epoch / 4) + rng.normal(0, 0.01), step=100 * (epoch + 1))
            run.metric("accuracy", level + rng.normal(0, 0.006), step=100 * (epoch + 1), split="dev")
        if mix == "learned":
            run.layers([mix_at(epoch, seed, rng) for epoch in range(8)])
        text = [f"{OPENINGS[i % 5]} {ENDINGS[i // 5 % 5]}" for i in range(len(ids))]
        run.predictions(
            pd.DataFrame(
                {
                    "example_id": ids,
                    "split": "test",
                    "gold": gold,
                    "predicted": predicted,
                    "probabilities": [[0.3, 0.7] if label == "positive" else [0.7, 0.3] for label in predicted],
                    "text": text,
                }
            )
        )
        share = float(right.mean())
        half = 1.96 * (share * (1 - share) / len(ids)) ** 0.5
        score = {"value": share, "low": share - half, "high": share + half, "n": len(ids), "higher_is_better": True}
        run.results({"metrics": [{"name": "accuracy", "split": "test", **score}]})
        run.log("finished")
    return shift_times(run.folder, minutes_ago)


def predicted_run(
    store: Path,
    name: str,
    predicted: list[str],
    gold: list[str],
    metric: str = "accuracy",
    seed: int = 1,
    task: str = "sst2",
    data: str = "d" * 16,
    model: str = "0123456789abcdef",
    higher_is_better: bool = True,
    score: float | None = None,
    **settings: object,
) -> Path:
    """Write a finished evaluate run of given predictions, scored by a metric or with a given score."""
    changed, extra = settings_with(**settings), {"task": task, "model": "runs/wiki-small/model"}
    with RunWriter.start(store, "evaluate", f"{name}-s{seed}", changed, seed, model, data, extra) as run:
        ids = [f"test-{i:04d}" for i in range(len(gold))]
        frame = pd.DataFrame({"example_id": ids, "split": "test", "gold": gold, "predicted": predicted})
        run.predictions(frame.assign(probabilities=[[1.0]] * len(gold)))
        value = float(METRICS[metric].values(gold, [predicted])[0]) if score is None else score
        facts = {"n": len(gold), "higher_is_better": higher_is_better, "low": value - 0.02, "high": value + 0.02}
        run.results({"metrics": [{"name": metric, "split": "test", "value": value, **facts}]})
    return run.folder


def mix_at(epoch: int, seed: int, rng: np.random.Generator) -> dict[str, object]:
    """Return one entry of layers.json: the mix drifts from even towards the first LSTM layer."""
    pull = 1 - np.exp(-epoch / 3)
    scores = np.array([0.2, 0.9, -0.3]) * pull + rng.normal(0, 0.05, 3)
    weights = np.exp(scores) / np.exp(scores).sum()
    return {"step": 100 * (epoch + 1), "seed": seed, "weights": weights.tolist(), "gamma": float(1 + 0.4 * pull)}


def pretrain_run(store: Path, name: str = "wiki-small", minutes_ago: float = 0.0, steps: int = 600) -> Path:
    """Write a finished pretrain run."""
    run = start_pretrain(store, name, steps)
    with run:
        score = {"value": 182.4, "n": 20_000, "higher_is_better": False, "kind": "full"}
        run.results({"metrics": [{"name": "perplexity", "split": "valid", **score}], "model": schema.MODEL})
    return shift_times(run.folder, minutes_ago)


def start_pretrain(store: Path, name: str, steps: int, share: float = 1.0) -> RunWriter:
    """Start a pretrain run and write its curves up to a share of its steps; it stays running until it is left."""
    rng = np.random.default_rng(3)
    run = RunWriter.start(store, "pretrain", name, Settings(), 1, data_fingerprint="c" * 16)
    for step in range(1, int(steps * share) + 1):
        tokens = step * 2560
        perplexity = 150 + 4000 * np.exp(-step / 60) + 60 * np.exp(-step / 300)
        run.metric("perplexity", perplexity * np.exp(rng.normal(0, 0.08)), step, tokens, "train", "sampled")
        if step % 10 == 0:
            run.metric("tokens_per_second", 9_400 + rng.normal(0, 150), step, tokens)
        if step % 100 == 0:
            run.metric("perplexity", perplexity * 1.2, step, tokens, "valid", "full")
    run.heartbeat(share, 600 * (1 - share))
    run.update()  # the rate limit of heartbeats would keep the progress back
    return run


def senses_run(store: Path, name: str = "bank-spring", labelled: bool = True, minutes_ago: float = 0.0) -> Path:
    """Write a finished senses run: two words of two senses; the higher the layer, the more vectors follow the sense."""
    rng = np.random.default_rng(11)
    frames = {
        ("bank", "river"): "We sat on the {} bank of the {} and watched the water *rise* .",
        ("bank", "money"): "The {} bank lent {} more money than it could ever get back .",
        ("spring", "season"): "In {} spring the {} trees turn green again after the snow .",
        ("spring", "water"): "A {} spring under the {} rock feeds the small lake below .",
    }
    fills = [(a, b) for a in ("old", "far", "wide", "cold", "quiet") for b in ("town", "north", "valley", "farm")]
    occurrences, rows = [], []
    for number, ((word, sense), text) in enumerate(frames.items()):
        centre = np.random.default_rng(number).normal(size=16)
        own = np.random.default_rng(50 + len(word)).normal(size=16)
        for fill in fills[: 12 + 2 * number]:
            tokens = tuple(text.format(*fill).split())
            occurrences.append(Occurrence(word, tokens.index(word), sense if labelled else "", tokens))
            layers = [own, *(own + pull * centre + rng.normal(size=16) for pull in (0.7, 1.6))]
            rows.append((len(rows), np.stack(layers).astype(np.float32)))
    with RunWriter.start(store, "senses", name, Settings(), 1, "0123456789abcdef", "e" * 16) as run:
        attributes = {"model_fingerprint": "0123456789abcdef", "state": "warm", "source": "made up"}
        save(run.folder / schema.OCCURRENCES, occurrences, rows, (3, 16), attributes)
        run.results({"metrics": []})
    return shift_times(run.folder, minutes_ago)


def broken_runs(store: Path) -> dict[str, Path]:
    """Write one folder for each way in which a run can be damaged; the key says which."""
    folders = {
        kind: evaluate_run(store, f"broken-{kind}")
        for kind in ("manifest-json", "manifest-keys", "newer", "no-manifest", "results", "notes", "config", "parquet")
    }
    folders["occurrences"] = senses_run(store, "broken-occurrences")
    (folders["occurrences"] / schema.OCCURRENCES).write_bytes(b"not an HDF5 file")
    (folders["manifest-json"] / schema.MANIFEST).write_text('{"schema_version": 1, "id"')
    (folders["manifest-keys"] / schema.MANIFEST).write_text('{"schema_version": 1, "kind": 7}')
    newer = json.loads((folders["newer"] / schema.MANIFEST).read_text()) | {"schema_version": 99}
    (folders["newer"] / schema.MANIFEST).write_text(json.dumps(newer))
    (folders["no-manifest"] / schema.MANIFEST).unlink()
    (folders["results"] / schema.RESULTS).write_text('{"metrics": [{"name": "accuracy"}]}')
    (folders["notes"] / schema.NOTES).write_bytes(b"\xff\xfe")
    (folders["config"] / schema.CONFIG).write_text("[evaluate\nmix = ")
    (folders["parquet"] / schema.PREDICTIONS).write_bytes(b"PAR1 and nothing else")
    (store / "some folder of mine").mkdir()
    (store / "notes.txt").write_text("not a run")
    return folders


def full_store(store: Path) -> None:
    """Fill a store as weeks of work would: two representations of three seeds, two pretrainings, senses, notes."""
    pretrain_run(store, "wiki-small", minutes_ago=9000)
    pretrain_run(store, "wiki-tiny", minutes_ago=8000, steps=300)
    senses_run(store, minutes_ago=1000)
    for seed in (1, 2, 3):
        evaluate_run(store, "sst2-none", seed, 0.74, 872, mix="none", minutes_ago=3000 - seed)
        evaluate_run(store, "sst2-learned", seed, 0.79, 872, mix="learned", minutes_ago=2000 - seed)
    write_notes(list_runs(store)[1].folder, Notes(tags=("baseline", "paper"), note="The one in the paper."))


def shift_times(folder: Path, minutes: float) -> Path:
    """Move a finished run's times into the past, its folder name with them; return the new folder."""
    path = folder / schema.MANIFEST
    manifest = json.loads(path.read_text())
    for key in ("started", "ended", "heartbeat"):
        moved = datetime.fromisoformat(manifest[key]) - timedelta(minutes=minutes)
        manifest[key] = moved.isoformat(timespec="seconds")
    manifest["id"] = datetime.fromisoformat(manifest["started"]).strftime("%Y%m%dT%H%M%S") + folder.name[15:]
    path.write_text(json.dumps(manifest))
    return folder.rename(folder.with_name(manifest["id"]))
