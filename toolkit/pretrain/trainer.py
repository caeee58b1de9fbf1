"""The training loop of a biLM: steps, validations, checkpoints, the clock and the export."""

import logging
import math
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from toolkit.bilm.compiled import product_dtype
from toolkit.bilm.folder import Softmax
from toolkit.bilm.model import BiLM
from toolkit.bilm.readers import refusals
from toolkit.bilm.spec import BiLMSpec
from toolkit.config import Pretrain, Settings
from toolkit.errors import FormatError, ToolkitError
from toolkit.files import fingerprint, room_for
from toolkit.pretrain import checkpoint, preflight
from toolkit.pretrain.batches import Batch, Batches, Lexicon
from toolkit.pretrain.distribute import ALONE, Replicas
from toolkit.pretrain.gradients import NotFinite, first_not_finite, norms
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.journal import Journal
from toolkit.pretrain.outcome import Outcome, export
from toolkit.pretrain.perplexity import Perplexity, Validation, unigram_perplexity
from toolkit.pretrain.standing import Standing
from toolkit.pretrain.vocabularies import log_unigrams, target_counts
from toolkit.progress import Progress
from toolkit.runs.schema import MODEL
from toolkit.runs.writer import RunWriter
from toolkit.text.prepare import Prepared
from toolkit.text.vocab import Vocabulary

logger = logging.getLogger(__name__)

NOT_SHARED = {"paths": True, "text": {"processes"}}  # settings in which the workers of a job may differ


class Trainer:
    """The training loop: steps, validations, the clock and the export.

    Of several workers each runs this loop. They decide by the chief's clock and validations, so that all do the same at
    the same step; the chief alone validates and writes.

    Attributes:
        step: steps taken.
        standing: the clock and the validations.
    """

    def __init__(
        self, prepared: Prepared, vocabulary: Vocabulary, settings: Settings, replicas: Replicas = ALONE
    ) -> None:
        self.prepared, self.vocabulary, self.all_settings, self.replicas = prepared, vocabulary, settings, replicas
        self.settings = settings.pretrain
        spec = BiLMSpec.from_settings(settings.model, len(vocabulary))
        self.lexicon = Lexicon.build(prepared.words, vocabulary, spec.max_characters)
        self.batches = Batches(
            prepared.train, self.lexicon, len(vocabulary), spec, self.settings, replicas.count, replicas.members
        )
        dtype = product_dtype(self.settings.compute_dtype)
        with replicas.scope():
            bilm = BiLM(spec, self.settings.seed)
            unigrams = self.settings.initial_bias == "unigrams"
            bias = log_unigrams(target_counts(prepared, vocabulary)) if unigrams else None
            self.graph = TrainingGraph(bilm, len(vocabulary), self.settings, dtype, replicas, bias=bias)
        self.validation = Validation(self.graph, prepared.valid, self.lexicon, self.settings.validation_tokens)
        self.unigram = unigram_perplexity(
            self.lexicon, prepared.counts, prepared.train.n_sentences, len(vocabulary), self.validation.targets()
        )
        self.total_steps = self.total_steps_of(self.settings)
        self.tokens_per_step = self.batches.batch_size * self.settings.unroll_steps
        self.standing = Standing(self.settings, self.total_steps)
        self.origin: dict[str, Any] = {}  # what an adapted model's card says of its parent
        self.start: Perplexity | None = None

    def total_steps_of(self, settings: Pretrain) -> int:
        """Return the steps of a budget in steps or epochs."""
        return settings.steps or math.ceil(settings.epochs * self.batches.steps_per_epoch)

    def begin_with(self, bilm: BiLM, softmax: Softmax) -> Perplexity:
        """Start from the weights of a model instead of random ones, and return their validation perplexity.

        They are the first state to beat: where training makes nothing better, they are exported again.

        Args:
            bilm: of the same shape.
            softmax: the output layer of this trainer's vocabulary.
        """
        for mine, given in zip(self.graph.bilm.variables, bilm.variables, strict=True):
            mine.assign(given)
        for mine, value in zip(self.graph.softmax, (softmax.weight, softmax.bias), strict=True):
            mine.assign(value)
        self.graph.averages.restart()
        self.start = self.validation.run()
        return self.start

    @property
    def data_fingerprint(self) -> str:
        """16 hexadecimal digits that name the text and the vocabulary."""
        return fingerprint([self.prepared.fingerprint, self.vocabulary.words])

    def restore(self, folder: Path) -> None:
        """Take up the state of a run's latest sound checkpoint."""
        self.standing.take_up(checkpoint.restore(folder, self.graph))
        logger.info("resuming at step %d", self.step)

    @property
    def step(self) -> int:
        """Steps taken."""
        return int(self.graph.steps.numpy())

    def run(self, run: RunWriter) -> dict[str, Any]:
        """Train to an end, then validate and export the best state by validation.

        Ends are: all steps, epochs or minutes are over; `patience` validations without a better one; Ctrl-C.

        Returns:
            the JSON document of `toolkit pretrain`.

        Raises:
            ToolkitError: a loss, gradient, weight or perplexity is no longer finite; the best state by validation, if
                there is one, has been exported.
            DiskFullError: the disk is full; the checkpoints are as they were.
            DataError: another worker has other settings or another text.
            WorkerLostError: another worker has gone.
        """
        journal = Journal(run, self.tokens_per_step, self.batches.steps_per_epoch, self.unigram)
        with room_for(run.folder), self.replicas.watching(lambda: self._way_on(run)):
            self.replicas.require_same(
                {
                    "configuration": fingerprint(self.all_settings.model_dump(mode="json", exclude=NOT_SHARED)),
                    "text or vocabulary": self.data_fingerprint,
                    "product dtype": self.graph.dtype.name,
                    "step": str(self.step),
                }
            )
            self._announce(run, journal)
            try:
                early = bool(self.replicas.workers or self.step)  # a worker may be lost, a decay be killed at once
                if early and self.replicas.from_chief(lambda: not checkpoint.exists(run.folder)):
                    self._save(run)
                if self.start:
                    self._judge(run, journal, self.start)
                ended = self._train(run, journal)
                self._save(run)  # before a validation that a second Ctrl-C may cut short
                if self.standing.at(self.step) is None:
                    self._judge(run, journal, self._measured())
            except NotFinite as error:
                raise ToolkitError(f"{error}; {self._rescued(run, journal)}") from None
            outcome = self._export(run, journal, ended)
            self.replicas.everyone(None)  # nobody leaves while the chief still writes
            refused = refusals(self.graph.bilm.spec)
            for refusal in refused:
                journal.say(str(refusal))
            return outcome.document(run) | {"refused_by": [vars(refusal) for refusal in refused]}

    def _announce(self, run: RunWriter, journal: Journal) -> None:
        """Say before the first step what is to come."""
        check = preflight.check(self.graph, self.batches, self.prepared, self.lexicon, self.vocabulary, self.validation)
        plan = preflight.plan(self.prepared, self.settings, self.batches, self.total_steps)
        unigram = f"unigram perplexity of the validation text {self.unigram:,.0f}"
        plan = f"{plan}; products in {self.graph.dtype.name}; {unigram}"
        for line in (plan, str(self.standing.schedule), *check.lines()):
            journal.say(line)
        if warning := check.warning():
            journal.say(warning, logging.WARNING)
        run.update(preflight=check.document())
        if self.replicas.count > 1:
            rows, joined = self.settings.batch_size, self.batches.batch_size
            journal.say(f"{self.replicas}, {rows} rows each: a step reads a joined batch of {joined} rows")

    def _way_on(self, run: RunWriter) -> str:
        return (
            f"{run.id} stands at step {self.step}: start all workers again with --resume {run.id}, which goes on from "
            f"its latest checkpoint"
        )

    def _train(self, run: RunWriter, journal: Journal) -> str:
        """Take steps up to an end and return its name."""
        try:
            with self.replicas.stopping_together(), ThreadPoolExecutor(1, "batches") as pool:
                return self._loop(run, journal, pool)
        except KeyboardInterrupt:
            run.stop_gracefully()
            logger.info("stopping after step %d: validating and exporting (Ctrl-C again to give up)", self.step)
            return "interrupt"

    def _loop(self, run: RunWriter, journal: Journal, pool: ThreadPoolExecutor) -> str:
        """Each batch is made while the step before it runs; validations do not count against the clock."""
        standing, limit = self.standing, self.settings.minutes * 60 or math.inf
        saved = standing.seconds
        coming = pool.submit(self.batches.shares, self.step)
        by_time = limit < math.inf
        total = limit if by_time else self.total_steps * self.tokens_per_step
        pace = preflight.Pace(self.tokens_per_step)
        with Progress("pretraining", total, "s of training" if by_time else "tokens") as progress:
            progress.advance(standing.seconds if by_time else self.step * self.tokens_per_step)
            while not (end := standing.end(self.step)):
                started, before = time.perf_counter(), standing.seconds
                shares = coming.result()
                coming = pool.submit(self.batches.shares, self.step + 1)
                rate = standing.schedule.rate(self.step)
                loss, norm = self.graph.train(*shares, rate=rate)
                if not math.isfinite(norm):
                    raise self._blown_up(journal, shares[0], loss, norm)
                seconds = time.perf_counter() - started
                standing.seconds = self.replicas.clock(before + seconds)
                standing.schedule.timed(self.step, standing.seconds - before, standing.seconds)
                share = standing.schedule.share(self.step)
                note = journal.step(self.step, standing.seconds, loss, norm, rate, share)
                progress.advance(seconds if by_time else self.tokens_per_step, note)
                if line := pace.line(seconds, self.total_steps - self.step, limit - standing.seconds):
                    journal.say(line)
                if standing.validation_is_due(self.step):
                    self._judge(run, journal, self._measured())
                if standing.seconds - saved >= self.settings.checkpoint_minutes * 60:
                    saved = standing.seconds
                    self._save(run)
        return end

    def _blown_up(self, journal: Journal, batch: Batch, loss: float, norm: float) -> NotFinite:
        for part in norms(self.graph, batch):
            journal.say(str(part))
        return NotFinite(
            f"step {self.step + 1}: the gradients' norm is {norm} (sampled loss {loss}), parts of the network are "
            f"listed above: lower pretrain.learning_rate ({self.settings.learning_rate})"
        )

    def _save(self, run: RunWriter) -> None:
        run.require_mine()
        self.standing.schedule.renew(self.step, self.standing.seconds)
        checkpoint.save(run.folder, self.graph, self.standing.progress(self.step))

    def _measured(self) -> Perplexity:
        """Measure the validation perplexity, in the chief alone."""
        figures = self.replicas.from_chief(lambda: self.validation.run().document())
        return Perplexity(figures["forward"], figures["backward"], figures["n"])

    def _judge(self, run: RunWriter, journal: Journal, perplexity: Perplexity) -> None:
        """Record a validation; the best state so far becomes a checkpoint."""
        if not math.isfinite(perplexity.mean):
            raise NotFinite(
                f"step {self.step}: the validation perplexity is {perplexity.mean}: lower pretrain.learning_rate "
                f"({self.settings.learning_rate})"
            )
        if part := first_not_finite(self.graph):
            raise NotFinite(f"step {self.step}: the weights of {part} are no longer finite")
        journal.validation(self.step, perplexity, self.standing.best, self.standing.best_step)
        if self.standing.judge(self.step, perplexity):
            self._save(run)

    def _rescued(self, run: RunWriter, journal: Journal) -> str:
        """Export the best state of a run that met numbers that are not finite; return what was exported, in words.

        The present weights count as a state where they are sound: a step that blows up changes none of them.
        """
        sound = self.standing.at(self.step) is not None
        if not sound:
            try:
                self._judge(run, journal, self._measured())
                self._save(run)
                sound = True
            except NotFinite:
                logger.info("the weights of step %d are not sound", self.step)
        if self.standing.best is None:
            return "no model is exported, since no state of this run had a finite validation perplexity"
        if not sound and not self.replicas.from_chief(lambda: self._take_best(run)):
            return f"no model is exported, since the checkpoint of the best step, {self.standing.best_step}, is lost"
        outcome = self._export(run, journal, "not finite")
        return f"{run.folder / MODEL} holds the weights of step {outcome.exported_step}"

    def _export(self, run: RunWriter, journal: Journal, ended: str) -> Outcome:
        """Write the model folder from the best state (the last one where that is lost) and the run's results."""
        run.require_mine()
        standing, step = self.standing, self.step
        last = exported = standing.at(step)
        if standing.best_step != step and self.replicas.from_chief(lambda: self._take_best(run)):
            step, exported = standing.best_step, standing.best
        outcome = Outcome(
            steps=self.step,
            tokens_per_step=self.tokens_per_step,
            seconds=standing.seconds,
            ended=ended,
            exported_step=step,
            exported=exported,
            best_step=standing.best_step,
            last=last,
            unigram=self.unigram,
            compute_dtype=self.graph.dtype.name,
        )
        text = self.all_settings.text.model_dump(mode="json", exclude={"processes"})
        origin = {"corpus": self.prepared.description, "text": text, **self.origin}
        if self.replicas.chief:
            with self.graph.averages.in_place():
                export(run, self.graph, self.vocabulary, outcome, origin)
        journal.say(str(outcome))
        return outcome

    def _take_best(self, run: RunWriter) -> bool:
        """Put the best weights into the graph and say whether they were there."""
        try:
            checkpoint.restore_weights(run.folder, self.graph, self.standing.best_step)
        except FormatError as error:
            logger.warning("the best state is lost: %s", error)
            return False
        return True
