"""Where a training run stands: its clock and its validations, from which follow when to validate and when to end."""

from toolkit.config import Pretrain
from toolkit.pretrain.checkpoint import Progress
from toolkit.pretrain.perplexity import Perplexity
from toolkit.pretrain.schedule import Schedule


class Standing:
    """What a checkpoint holds beside the variables.

    Args:
        settings: limits, intervals and patience.
        total_steps: after which the run ends.

    Attributes:
        seconds, validated, best, best_step, since_best: see `checkpoint.Progress`.
        schedule: the learning rate of each step.
        latest: step and result of the last validation in this process.
    """

    def __init__(self, settings: Pretrain, total_steps: int) -> None:
        self.settings, self.total_steps = settings, total_steps
        self.schedule = Schedule(settings, total_steps)
        self.seconds, self.validated, self.since_best = 0.0, 0.0, 0
        self.best: Perplexity | None = None
        self.best_step: int | None = None
        self.latest: tuple[int, Perplexity] | None = None

    def take_up(self, progress: Progress) -> None:
        """Go on from a checkpoint."""
        self.seconds, self.validated = progress.seconds, progress.validated
        self.schedule.take_up(progress.schedule)
        self.best, self.best_step, self.since_best = progress.best, progress.best_step, progress.since_best

    def begin_at(self, step: int) -> None:
        """Begin another budget at this step: validations before it do not count."""
        self.schedule.begin_at(step, self.seconds)
        self.validated, self.since_best, self.best, self.best_step = self.seconds, 0, None, None

    def progress(self, step: int) -> Progress:
        """Return what a checkpoint at a step holds."""
        schedule = self.schedule.document()
        return Progress(step, self.seconds, self.best, self.best_step, self.validated, self.since_best, schedule)

    def end(self, step: int) -> str | None:
        """Return the name of the end that is reached, see `outcome.ENDINGS`; None to go on."""
        settings = self.settings
        if step >= self.total_steps:
            return "steps" if settings.steps else "epochs"
        if settings.minutes and self.seconds >= settings.minutes * 60:
            return "minutes"
        return "patience" if settings.patience and self.since_best >= settings.patience else None

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
