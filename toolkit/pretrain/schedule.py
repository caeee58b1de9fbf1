"""The learning rate over a run: warm-up, then constant or decaying to zero, over steps, epochs or minutes."""

import math
import statistics
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

from toolkit.config import Pretrain
from toolkit.errors import UsageError

WARM_UP, WARM_UP_SHARE = 200, 0.05  # of "auto": steps, and the share of the run that they take at most
FIRST_PLAN = 8  # steps after which a budget in minutes is first turned into steps
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
        UsageError: the warm-up is as long as the budget, or longer; of a budget in minutes `timed` raises it.
    """

    def __init__(self, settings: Pretrain, total_steps: int, plan: Plan = Plan()) -> None:
        self.settings, self.total_steps, self.plan = settings, total_steps, plan
        asked = settings.warmup_steps
        self.warmup_steps = min(WARM_UP, int(total_steps * WARM_UP_SHARE)) if asked == "auto" else asked
        self._require_room(total_steps, "")
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
        if step == self.plan.start_step + FIRST_PLAN and self.settings.minutes:
            self.renew(step, clock)
            left = (self.settings.minutes * 60 - clock) / max(self.plan.pace, 1e-9)
            self._require_room(FIRST_PLAN + int(left), f" in {self.settings.minutes:g} minutes")

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
        if (risen := self._risen(taken, share)) < 1:
            return peak * risen
        match self.settings.schedule:
            case "constant":
                return peak
            case "cosine":
                return peak * 0.5 * (1.0 + math.cos(math.pi * share))
            case "linear":
                return peak * (1.0 - share)
        return peak * min(1.0, (1.0 - share) / self.settings.decay_share)

    def _risen(self, taken: int, share: float) -> float:
        """Return how far the warm-up is; "auto" is over at its share of the run, which in minutes may be few steps."""
        by_steps = (taken + 1) / (self.warmup_steps + 1)
        return max(by_steps, share / WARM_UP_SHARE) if self.settings.warmup_steps == "auto" else by_steps

    def _require_room(self, steps: int, budget: str) -> None:
        asked = self.settings.warmup_steps
        if asked != "auto" and 0 < steps <= asked:
            raise UsageError(
                f"pretrain.warmup_steps = {asked:,}, but the run has only {steps:,} steps{budget}: lower it, or raise "
                f"--steps, --epochs or --minutes"
            )

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
