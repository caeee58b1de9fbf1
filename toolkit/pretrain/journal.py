"""What a pretraining run tells while it trains: lines of its log, metrics, the note beside the progress bar."""

import logging
import math

from toolkit.pretrain.perplexity import Perplexity
from toolkit.runs.writer import RunWriter

logger = logging.getLogger(__name__)

LOG_STEPS = 10  # steps between two lines of metrics.jsonl


class Journal:
    """Every perplexity in it says whether it is of the sampled or of the full softmax.

    Args:
        run: is written to.
        tokens_per_step: targets a direction that a step reads.
        steps_per_epoch: from the real number of tokens.
        unigram: perplexity of the validation text under the training text's unigrams.
    """

    def __init__(self, run: RunWriter, tokens_per_step: int, steps_per_epoch: int, unigram: float) -> None:
        self.run, self.tokens_per_step, self.steps_per_epoch = run, tokens_per_step, steps_per_epoch
        self.unigram = unigram
        self._valid = ""

    def say(self, line: str, level: int = logging.INFO) -> None:
        """Log a line, in the run's own log too."""
        logger.log(level, "%s", line)
        self.run.log(line)

    def step(self, step: int, seconds: float, loss: float, norm: float, rate: float, share: float) -> str:
        """Record a step and return its note.

        Args:
            step: steps taken.
            seconds: of training so far.
            loss: sampled, in nats a token.
            norm: of the gradients, before clipping.
            rate: the learning rate of the step.
            share: of the run that is over.
        """
        self.run.heartbeat(share, seconds / share * (1.0 - share))
        perplexity = math.exp(min(loss, 50))  # bounded, so that an early one is still a number
        tokens = step * self.tokens_per_step
        if step % LOG_STEPS == 0 or step == 1:
            self.run.metric("perplexity", perplexity, step, tokens, "train", "sampled")
            self.run.metric("gradient_norm", norm, step, tokens)
            self.run.metric("learning_rate", rate, step, tokens)
            self.run.metric("tokens_per_second", tokens / seconds, step, tokens)
        return (
            f"step {step}, epoch {step / self.steps_per_epoch:.2f}, sampled perplexity {perplexity:,.0f}, "
            f"{tokens / seconds:,.0f} tokens/s{self._valid}"
        )

    def validation(self, step: int, perplexity: Perplexity, best: Perplexity | None, best_step: int | None) -> None:
        """Record a validation beside the best one before it."""
        tokens = step * self.tokens_per_step
        for name, value in perplexity.metrics.items():
            self.run.metric(name, value, step, tokens, "valid", "full")
        self._valid = f", valid (full) {perplexity.mean:,.1f}"
        better = best is None or perplexity.mean < best.mean
        rank = "the best so far" if better else f"best: {best.mean:,.1f} at step {best_step}"
        self.say(f"step {step}: validation perplexity {perplexity}; unigram {self.unigram:,.0f}; {rank}")
