"""Exponential averages of the weights, which validation and export use in place of the latest weights."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from toolkit.bilm.backend import tf

EVERY = 10  # steps between two updates, each as large as ten: the averages then cost next to nothing


class Averages(tf.Module):
    """A running mean of each trained variable, with weights that fall by `decay` per step.

    Early on the mean is over what there is: the decay of an update rises as (1 + n) / (10 + n) with their number n.

    Args:
        variables: those that are trained.
        decay: per step, between 0 and 1; 0 keeps no averages.
    """

    def __init__(self, variables: Sequence[tf.Variable], decay: float) -> None:
        super().__init__()
        self.trained, self.decay = list(variables), decay
        self.values = [tf.Variable(tf.identity(v)) for v in variables] if decay else []

    def update(self, step: tf.Tensor) -> None:
        """Take the latest weights in, inside the training graph; `step` int64 counts the steps taken."""
        if self.values:
            tf.cond(step % EVERY == 0, lambda: self._take_in(step), lambda: tf.no_op())

    def _take_in(self, step: tf.Tensor) -> tf.Operation:
        n = tf.cast(step // EVERY, tf.float32)
        new = 1.0 - tf.minimum(self.decay**EVERY, (1.0 + n) / (10.0 + n))
        for mean, value in zip(self.values, self.trained, strict=True):
            tf.raw_ops.AssignAddVariableOp(resource=mean.handle, value=new * (value - mean))
        return tf.no_op()

    def restart(self) -> None:
        """Set the averages to the latest weights."""
        for mean, value in zip(self.values, self.trained, strict=False):
            mean.assign(value)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Let the trained variables hold the averages within the block, then the latest weights again."""
        if not self.values:
            yield
            return
        latest = [value.numpy() for value in self.trained]
        try:
            for mean, value in zip(self.values, self.trained, strict=True):
                value.assign(mean)
            yield
        finally:
            for value, held in zip(self.trained, latest, strict=True):
                value.assign(held)
