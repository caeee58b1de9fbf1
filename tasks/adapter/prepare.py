"""What stands before every training: the task's examples, the layers of their sentences, what stands for a word."""

import logging

import numpy as np

from tasks.adapter.cache import layer_cache
from tasks.adapter.dataset import Dataset
from tasks.adapter.features import LayerSource, features_of
from tasks.adapter.finetuning import Sentences, bilm_below
from tasks.adapter.representation import BESIDE_BAG, Representation, split_mixes
from tasks.adapter.rounds import Prepared
from tasks.adapter.wordvectors import title_of, width_of, word_table
from tasks.task import Splits, Task
from toolkit.config import Evaluate, Settings
from toolkit.errors import UsageError

logger = logging.getLogger(__name__)

WEIGHED = ("learned", "gated")  # mixes of several layers


def representations_of(source: LayerSource, chosen: Evaluate) -> list[Representation]:
    """Return what the mixes that the settings name make of a source.

    Raises:
        UsageError: a mix is unknown or does not fit the source.
    """
    mixes, x_k, x_k_width = split_mixes(chosen.mix), chosen.x_k, width_of(chosen)
    forms = [mix.removeprefix(BESIDE_BAG) for mix in mixes]
    names = (title_of(chosen), source.names[1]) if x_k_width or source.names[0] == "x_k" else source.names
    if source.n_layers == 1 and x_k and not x_k_width:
        if "none" in forms:
            raise UsageError(f"mix 'none' leaves no vector: {source.name} holds one layer and no x_k; take --mix top")
        weighed = next((mix for mix in forms if mix in WEIGHED), None)
        if weighed:
            raise UsageError(f"mix {weighed!r} has nothing to weigh: {source.name} holds one layer; take --mix top")
        logger.info("%s holds one layer, which is the mix: no x_k beside it", source.name)
        x_k = False
    if x_k and not x_k_width and source.names[0] != "x_k":
        logger.info("x_k of %s is its layer 0; --no-x-k leaves it out", source.name)
    shape = (source.n_layers, source.width, source.directions, names, x_k_width, chosen.mix_at)
    return [Representation.parse(mix, x_k, *shape) for mix in mixes]


def prepare(task: Task, splits: Splits, source: LayerSource, settings: Settings) -> Prepared:
    """Put a task's examples beside the layers of their sentences; beside the sentences where these are not frozen.

    Raises:
        DataError, FormatError: the source does not give the layers of these sentences.
        UsageError: they need more room than the cache may take, or a file of word vectors has none of the words.
    """
    parts = splits.parts()
    examples = [example for part in parts.values() for example in part]
    sentences = [tokens for example in examples for tokens in example.sentences]
    tuned, words = settings.evaluate.finetune_rate > 0, width_of(settings.evaluate) > 0
    read = [source.tokens(tokens) for tokens in sentences]
    frozen = None if tuned and not words else features_of(read, source, splits.fingerprint, layer_cache(settings))
    features = Sentences(read) if tuned else frozen
    borders = np.cumsum([len(part) for part in parts.values()])
    rows = dict(zip(parts, np.split(np.arange(len(examples)), borders[:-1]), strict=True))
    directions = source.directions if source.names[0] == "x_k" and source.n_layers > 1 else 0
    table = word_table(settings.evaluate, sentences, frozen, directions)
    bilm = bilm_below(source) if tuned else None
    return Prepared(task, splits, source, Dataset.of(task, examples, features), rows, table, bilm)
