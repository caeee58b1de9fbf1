"""The learning rate over a run: warm-up, then constant or decaying to zero, over steps, epochs or minutes."""

import math
import statistics
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

from toolkit.config import Pretrain
from toolkit.errors import UsageError

WARM_UP = 200  # steps of "auto", at most a twentieth of the run
FIRST_PLAN = 20  # steps after which a budget in minutes is first turned into steps
TIMED = 50  # latest steps whose times make the pace


@dataclass(frozen=True)
class Plan:
    """The clock that the rate goes by: from this and a step's number follows the rate of that step.

    With a budget in minutes the plan is renewed only when a checkpoint is written, which holds it: a resumed run
    repeats the steps after its checkpoint with the same rates.

    Attributes:
        start_step, start_seconds: where the budget begins; not zero for the decay of another run.
        step, seconds: a step and the seconds of training after it.
        pace: seconds that each later step is expected to take; 0 before it is known.
    """

    start_step: int = 0
    start_seconds: float = 0.0
    step: int = 0
    seconds: float = 0.0
    pace: float = 0.0


class Schedule:
    """The learning rate of each step.

    Args:
        settings: peak rate, warm-up, schedule and budget.
        total_steps: of the budget in steps or epochs.
        plan: where it is.

    Attributes:
        plan: what a checkpoint holds.
        warmup_steps: resolved.

    Raises:
        UsageError: the warm-up is as long as the budget, or longer.
    """

    def __init__(self, settings: Pretrain, total_steps: int, plan: Plan = Plan()) -> None:
        self.settings, self.total_steps, self.plan = settings, total_steps, plan
        asked = settings.warmup_steps
        self.warmup_steps = min(WARM_UP, total_steps // 20) if asked == "auto" else asked
        if asked != "auto" and asked and asked >= total_steps:
            raise UsageError(
                f"pretrain.warmup_steps = {asked:,}, but the run has only {total_steps:,} steps: lower it, or raise "
                f"--steps or --epochs"
            )
        self._times: deque[float] = deque(maxlen=TIMED)

    def begin_at(self, step: int, seconds: float) -> None:
        """Count the budget from here: the decay of another run begins at its checkpoint."""
        self.plan = Plan(step, seconds, step, seconds)

    def take_up(self, document: dict[str, Any] | None) -> None:
        """Continue from what a checkpoint holds; None comes from a checkpoint of version 0.1."""
        self.plan = Plan(**document) if document else Plan()

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        return asdict(self.plan)

    def timed(self, step: int, seconds: float, clock: float) -> None:
        """Note the time that a step took; at the first moment when the pace is known, make the plan.

        Args:
            step: steps taken.
            seconds: that this one took.
            clock: seconds of training so far.
        """
        self._times.append(seconds)
        if step == self.plan.start_step + FIRST_PLAN:
            self.renew(step, clock)

    def renew(self, step: int, clock: float) -> None:
        """Bring the plan of a budget in minutes up to date; call this only where the plan is saved right after."""
        pace = statistics.median(self._times) if self._times else self.plan.pace
        self.plan = Plan(self.plan.start_step, self.plan.start_seconds, step, clock, pace)

    def share(self, step: int) -> float:
        """Return the share of the budget, in 0 … 1, that is over when `step` steps have been taken."""
        plan, limit = self.plan, self.settings.minutes * 60
        over = (step - plan.start_step) / max(1, self.total_steps - plan.start_step)
        if limit:
            seconds = plan.seconds + (step - plan.step) * plan.pace
            over = max(over, (seconds - plan.start_seconds) / max(limit - plan.start_seconds, 1e-9))
        return min(1.0, over)

    def rate(self, step: int) -> float:
        """Return the learning rate of the step that follows `step` steps."""
        peak, share = self.settings.learning_rate, self.share(step)
        taken = step - self.plan.start_step
        if taken < self.warmup_steps:
            return peak * (taken + 1) / (self.warmup_steps + 1)
        match self.settings.schedule:
            case "constant":
                return peak
            case "cosine":
                return peak * 0.5 * (1.0 + math.cos(math.pi * share))
            case "linear":
                return peak * (1.0 - share)
        return peak * min(1.0, (1.0 - share) / self.settings.decay_share)

    def __str__(self) -> str:
        settings = self.settings
        line = f"{settings.optimizer}, peak rate {settings.learning_rate:g}, warm-up {self.warmup_steps:,} steps, "
        match settings.schedule:
            case "constant":
                return f"{line}then constant"
            case "warmup-stable-decay":
                share = f"the last {settings.decay_share:.0%} of the run"
                return f"{line}then constant, falling linearly to zero in {share}"
        return f"{line}then falling to zero ({settings.schedule}) until the end of the run"
