"""The training loop of a biLM: steps, validations, checkpoints, the clock and the export."""

import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from toolkit import __version__
from toolkit.bilm.backend import tf
from toolkit.bilm.compiled import product_dtype
from toolkit.bilm.folder import Softmax, save_model
from toolkit.bilm.model import BiLM
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Model as ModelSettings
from toolkit.config import Settings
from toolkit.errors import ToolkitError
from toolkit.files import fingerprint
from toolkit.memory import peak_memory_mb
from toolkit.pretrain import checkpoint
from toolkit.pretrain.batches import Batches, Lexicon
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.perplexity import Perplexity, Validation, unigram_perplexity
from toolkit.progress import Progress
from toolkit.runs.schema import MODEL
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import Prepared
from toolkit.text.vocab import Vocabulary

logger = logging.getLogger(__name__)

LOG_STEPS = 10  # steps between two lines of metrics.jsonl


def spec_of(settings: ModelSettings) -> BiLMSpec:
    """Return the shape that the `[model]` table asks for."""
    return BiLMSpec(
        char_dim=settings.char_dim,
        filters=tuple(settings.filters),
        n_highway=settings.n_highway,
        activation=settings.activation,
        max_characters=settings.max_characters_per_token,
        dim=settings.dim,
        projection_dim=settings.projection_dim,
        n_layers=settings.n_layers,
        cell_clip=settings.cell_clip,
        proj_clip=settings.proj_clip,
        skip=settings.use_skip_connections,
    )


class Trainer:
    """The training loop: steps, validations, the clock and the export.

    Attributes:
        step, seconds, validated, best, best_step: see `checkpoint.Progress`.
    """

    def __init__(self, prepared: Prepared, vocabulary: Vocabulary, settings: Settings) -> None:
        self.prepared, self.vocabulary, self.all_settings = prepared, vocabulary, settings
        self.settings = settings.pretrain
        spec = spec_of(settings.model)
        self.lexicon = Lexicon.build(prepared.words, vocabulary, spec.max_characters)
        self.batches = Batches(prepared.train, self.lexicon, len(vocabulary), spec, self.settings)
        bilm = BiLM(spec, self.settings.seed)
        dtype = product_dtype(self.settings.compute_dtype)
        self.graph = TrainingGraph(bilm, len(vocabulary), self.settings, dtype)
        self.validation = Validation(self.graph, prepared.valid, self.lexicon, self.settings.validation_tokens)
        self.unigram = unigram_perplexity(
            self.lexicon, prepared.counts, prepared.train.n_sentences, len(vocabulary), self.validation.targets()
        )
        self.total_steps = self.settings.steps or math.ceil(self.settings.epochs * self.batches.steps_per_epoch)
        self.tokens_per_step = self.settings.batch_size * self.settings.unroll_steps
        self.seconds, self.validated = 0.0, 0.0
        self.perplexity: Perplexity | None = None
        self.best: float | None = None
        self.best_step: int | None = None

    @property
    def data_fingerprint(self) -> str:
        """16 hexadecimal digits that name the text and the vocabulary."""
        return fingerprint([self.prepared.fingerprint, self.vocabulary.words])

    def restore(self, folder: Path) -> None:
        """Take up the state of a run's latest sound checkpoint."""
        progress = checkpoint.restore(folder, self.graph)
        self.graph.steps.assign(progress.step)
        self.seconds, self.validated = progress.seconds, progress.validated
        self.best, self.best_step = progress.best, progress.best_step
        logger.info("resuming at step %d", self.step)

    @property
    def step(self) -> int:
        """Steps taken."""
        return int(self.graph.steps)

    def run(self, run: RunWriter) -> dict[str, Any]:
        """Train until steps, epochs or minutes are over or Ctrl-C comes; then validate and export.

        Raises:
            ToolkitError: loss or gradients are no longer finite numbers.
        """
        logger.info("%s", self._plan())
        run.log(self._plan())
        stopped = False
        try:
            with ThreadPoolExecutor(1, "batches") as pool:
                self._loop(run, pool)
        except KeyboardInterrupt:
            stopped = True
            run.stop_gracefully()
            logger.info("stopping after step %d: validating and exporting (Ctrl-C again to give up)", self.step)
            self._save(run)
        except _NotFinite as error:
            self._export(run)
            raise ToolkitError(f"{error}; {run.folder / MODEL} holds the weights before that step") from None
        if not stopped:
            self._save(run)
        self._validate(run)
        return self._finish(run, stopped)

    def _loop(self, run: RunWriter, pool: ThreadPoolExecutor) -> None:
        """Each batch is made while the step before it runs; validations do not count against the clock."""
        limit = self.settings.minutes * 60 or math.inf
        saved = self.seconds
        coming = pool.submit(self.batches.__getitem__, self.step)
        by_time = limit < math.inf
        total = limit if by_time else self.total_steps * self.tokens_per_step
        with Progress("pretraining", total, "s of training" if by_time else "tokens") as progress:
            progress.advance(self.seconds if by_time else self.step * self.tokens_per_step)
            while self.step < self.total_steps and self.seconds < limit:
                started = time.perf_counter()
                batch = coming.result()
                coming = pool.submit(self.batches.__getitem__, self.step + 1)
                loss, norm = self.graph.train(batch)
                if not math.isfinite(norm):
                    raise _NotFinite(
                        f"step {self.step}: the gradients' norm is {norm} (sampled loss {loss}): lower "
                        f"pretrain.learning_rate ({self.settings.learning_rate})"
                    )
                seconds = time.perf_counter() - started
                self.seconds += seconds
                share = max(self.step / self.total_steps, self.seconds / limit)
                self._record(run, loss, norm, share)
                rate = self.tokens_per_step * self.step / self.seconds
                note = f"step {self.step}, sampled perplexity {math.exp(min(loss, 50)):,.0f}, {rate:,.0f} tokens/s"
                if self.perplexity:
                    note += f", valid (full) {self.perplexity.mean:,.1f}"
                progress.advance(seconds if by_time else self.tokens_per_step, note)
                if self.seconds - self.validated >= self.settings.validate_minutes * 60:
                    self._validate(run)
                if self.seconds - saved >= self.settings.checkpoint_minutes * 60:
                    saved = self.seconds
                    self._save(run)

    def _save(self, run: RunWriter) -> None:
        progress = checkpoint.Progress(self.step, self.seconds, self.best, self.best_step, self.validated)
        checkpoint.save(run.folder, self.graph, progress)

    def _plan(self) -> str:
        stream = self.prepared.train
        known = self.lexicon.targets[: len(self.prepared.counts)] != self.vocabulary.id("<UNK>")
        oov = 1.0 - self.prepared.counts[known].sum() / max(1, self.prepared.counts.sum())
        weights = sum(int(np.prod(v.shape)) for v in self.graph.dense)
        return (
            f"{stream.n_tokens:,} tokens in {stream.n_sentences:,} sentences, vocabulary {len(self.vocabulary):,} "
            f"({oov:.1%} of tokens outside); {weights / 1e6:.1f} M weights and "
            f"{np.prod(self.graph.softmax_weight.shape) / 1e6:.1f} M in the softmax; "
            f"{self.batches.steps_per_epoch:,} steps an epoch; products in {self.graph.dtype.name}; "
            f"unigram perplexity of the validation text {self.unigram:,.0f}"
        )

    def _record(self, run: RunWriter, loss: float, norm: float, share: float) -> None:
        left = self.seconds / share * (1.0 - share)
        run.heartbeat(min(share, 1.0), left)
        if self.step % LOG_STEPS and self.step != 1:
            return
        tokens = self.step * self.tokens_per_step
        run.metric("perplexity", math.exp(min(loss, 50)), self.step, tokens, "train", "sampled")
        run.metric("gradient_norm", norm, self.step, tokens)
        run.metric("tokens_per_second", tokens / self.seconds, self.step, tokens)

    def _validate(self, run: RunWriter) -> None:
        self.perplexity = self.validation.run()
        tokens = self.step * self.tokens_per_step
        run.metric("perplexity", self.perplexity.mean, self.step, tokens, "valid", "full")
        run.metric("perplexity_forward", self.perplexity.forward, self.step, tokens, "valid", "full")
        run.metric("perplexity_backward", self.perplexity.backward, self.step, tokens, "valid", "full")
        self.validated = self.seconds
        if self.best is None or self.perplexity.mean < self.best:
            self.best, self.best_step = self.perplexity.mean, self.step
        line = (
            f"step {self.step}: validation perplexity (full softmax, n = {self.perplexity.n:,}) "
            f"{self.perplexity.mean:,.1f}, forward {self.perplexity.forward:,.1f}, "
            f"backward {self.perplexity.backward:,.1f}; unigram {self.unigram:,.0f}"
        )
        run.log(line)
        logger.info("%s", line)

    def _export(self, run: RunWriter) -> str:
        weight, bias = (variable.numpy() for variable in self.graph.softmax)
        card = {
            "made_by": f"elmo-toolkit {__version__}",
            "tensorflow": tf.__version__,
            "run": run.id,
            "corpus": self.prepared.description,
            "text": self.all_settings.text.model_dump(mode="json", exclude={"processes"}),
            "steps": self.step,
            "tokens": self.step * self.tokens_per_step,
            "compute_dtype": self.graph.dtype.name,
            "validation_perplexity": self.perplexity.document() if self.perplexity else None,
            "unigram_perplexity": self.unigram,
        }
        return save_model(run.folder / MODEL, self.graph.bilm, self.vocabulary, Softmax(weight, bias), card)

    def _finish(self, run: RunWriter, stopped: bool) -> dict[str, Any]:
        mark = self._export(run)
        run.update(model_fingerprint=mark)
        full = {"split": "valid", "n": self.perplexity.n, "higher_is_better": False}
        metrics = [
            {
                "name": "perplexity",
                "value": self.perplexity.mean,
                "best": self.best,
                "best_step": self.best_step,
                "kind": "full",
                **full,
            },
            {"name": "perplexity_forward", "value": self.perplexity.forward, "kind": "full", **full},
            {"name": "perplexity_backward", "value": self.perplexity.backward, "kind": "full", **full},
            {"name": "unigram_perplexity", "value": self.unigram, **full},
        ]
        run.results({"metrics": metrics, "model": MODEL, "steps": self.step})
        return {
            "run": run.id,
            "model": str(run.folder / MODEL),
            "stopped": stopped,
            "steps": self.step,
            "tokens": self.step * self.tokens_per_step,
            "tokens_per_second": round(self.step * self.tokens_per_step / max(self.seconds, 1e-9), 1),
            "compute_dtype": self.graph.dtype.name,
            "peak_memory_mb": peak_memory_mb(),
            "validation_perplexity": self.perplexity.document(),
            "unigram_perplexity": self.unigram,
        }


class _NotFinite(Exception):
    """A step whose gradients are not finite numbers; it changed no weight."""
