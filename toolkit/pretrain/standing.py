"""Where a training run stands: its clock and its validations, from which follow when to validate and when to end."""

from toolkit.config import Pretrain
from toolkit.pretrain.checkpoint import Progress
from toolkit.pretrain.perplexity import Perplexity


class Standing:
    """What a checkpoint holds beside the variables.

    Args:
        settings: limits, intervals and patience.
        total_steps: after which the run ends.

    Attributes:
        seconds, validated, best, best_step, since_best: see `checkpoint.Progress`.
        latest: step and result of the last validation in this process.
    """

    def __init__(self, settings: Pretrain, total_steps: int) -> None:
        self.settings, self.total_steps = settings, total_steps
        self.seconds, self.validated, self.since_best = 0.0, 0.0, 0
        self.best: Perplexity | None = None
        self.best_step: int | None = None
        self.latest: tuple[int, Perplexity] | None = None

    def take_up(self, progress: Progress) -> None:
        """Go on from a checkpoint."""
        self.seconds, self.validated = progress.seconds, progress.validated
        self.best, self.best_step, self.since_best = progress.best, progress.best_step, progress.since_best

    def progress(self, step: int) -> Progress:
        """Return what a checkpoint at a step holds."""
        return Progress(step, self.seconds, self.best, self.best_step, self.validated, self.since_best)

    def end(self, step: int) -> str | None:
        """Return the name of the end that is reached, see `outcome.ENDINGS`; None to go on."""
        settings = self.settings
        if step >= self.total_steps:
            return "steps" if settings.steps else "epochs"
        if settings.minutes and self.seconds >= settings.minutes * 60:
            return "minutes"
        return "patience" if settings.patience and self.since_best >= settings.patience else None

    def share(self, step: int) -> float:
        """Return the share of the run that is over."""
        by_time = self.seconds / (self.settings.minutes * 60) if self.settings.minutes else 0.0
        return max(step / self.total_steps, by_time)

    def validation_is_due(self, step: int) -> bool:
        """Return whether to validate behind a step."""
        if self.settings.validate_steps:
            return step % self.settings.validate_steps == 0
        return self.seconds - self.validated >= self.settings.validate_minutes * 60

    def judge(self, step: int, perplexity: Perplexity) -> bool:
        """Take note of a validation and return whether it is the best so far."""
        self.latest, self.validated = (step, perplexity), self.seconds
        if self.best is not None and perplexity.mean >= self.best.mean:
            self.since_best += 1
            return False
        self.best, self.best_step, self.since_best = perplexity, step, 0
        return True

    def at(self, step: int) -> Perplexity | None:
        """Return the validation of a step, None where the last one was at another."""
        return self.latest[1] if self.latest and self.latest[0] == step else None
