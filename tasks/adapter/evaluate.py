"""Evaluating a model on one task: one run for each representation and seed, and the document that sums them up."""

from pathlib import Path
from typing import Any

from tasks.adapter.features import LayerSource
from tasks.adapter.grid import run_grid
from tasks.task import Task
from toolkit.bilm.folder import Model
from toolkit.config import Settings
from toolkit.embed.encoder import Encoder
from toolkit.embed.states import state_mark
from toolkit.text.treebank import moses_tokens

MOSES = " moses"  # what the mark of the state says if Treebank tokens are read as Moses tokens


def source_of(model: Model, settings: Settings) -> LayerSource:
    """Return a model as a source of layers, in the state that the settings name.

    It reads a task's tokens as Moses tokens, unless it was trained on tokens of its own (text that came tokenised).
    """
    chosen, spec = settings.embed, model.spec
    moses = "white space" not in model.card.get("corpus", {}).get("methods", {}).values()
    encoder = Encoder(model, chosen.state, chosen.batch_tokens, chosen.compute)
    return LayerSource(
        str(model.path),
        model.fingerprint,
        state_mark(chosen.state) + (MOSES if moses else ""),
        spec.n_layers + 1,
        spec.width,
        encoder.encode,
        spec.directions,
        compute=chosen.compute,
        model=model,
        tokens=moses_tokens if moses else list,
    )


def evaluate(task: Task, source: LayerSource, settings: Settings, store: Path, rerun: bool = False) -> dict[str, Any]:
    """Train and score a classifier for each mix and seed of one task; errors as in `tasks.adapter.grid.run_grid`.

    Args:
        task: what is asked; its data is looked for where `settings.paths.data` says, then elsewhere.
        source: what gives the layers; they are computed once and kept in the cache.
        settings: `evaluate.mix` may name several mixes, parted by commas.
        store: the run store; a finished run of the same configuration and seed is taken from there.
        rerun: train anew even so.

    Returns:
        the JSON document of `toolkit evaluate`: task, metric, source of the data, model, layers, rows (one a mix) and
        comparisons (each later mix against the first, on the same test examples).
    """
    (document,) = run_grid([(task, source)], settings, store, rerun=rerun).documents
    return document
