"""The optimizers of pretraining: Adam, the default, and Adagrad as the published models were trained with.

Both update dense variables whole and of sparse tables (softmax, word vectors) only the rows that a step touches.
"""

from collections.abc import Sequence

from toolkit.bilm.backend import tf
from toolkit.config import Pretrain

BETA_1, BETA_2 = 0.9, 0.99  # a second moment over 100 steps: short trainings need a short memory
EPSILON = 1e-8


class Adagrad(tf.Module):
    """Adagrad (Duchi et al. 2011) as TensorFlow 1 has it: without epsilon.

    Args:
        variables: all that is trained, dense variables and tables.
        settings: `initial_accumulator` is what the sums of squares start with.

    Attributes:
        slots: the optimizer's own variables by name, one per trained variable, in their order.
    """

    def __init__(self, variables: Sequence[tf.Variable], settings: Pretrain) -> None:
        super().__init__()
        start = settings.initial_accumulator
        self.slots = {"slots": [tf.Variable(tf.fill(v.shape, start)) for v in variables]}

    def update(self, index: int, variable: tf.Variable, gradient: tf.Tensor, rate: tf.Tensor, step: tf.Tensor) -> None:
        """Update a dense variable inside the training graph; `index` is its place among the trained variables."""
        slot = self.slots["slots"][index]
        tf.raw_ops.ResourceApplyAdagrad(var=variable.handle, accum=slot.handle, lr=rate, grad=gradient)

    def update_rows(
        self,
        index: int,
        variable: tf.Variable,
        gradient: tf.Tensor,
        rows: tf.Tensor,
        rate: tf.Tensor,
        step: tf.Tensor,
    ) -> None:
        """Update rows int32 [N] of a table with their gradients [N, …]; repeated rows bring a gradient of zero."""
        slot = self.slots["slots"][index]
        # Additions, not assignments: a row that only fills up a shape comes twice and adds zero.
        tf.raw_ops.ResourceScatterAdd(resource=slot.handle, indices=rows, updates=gradient**2)
        change = rate * gradient * tf.math.rsqrt(tf.gather(slot, rows))
        tf.raw_ops.ResourceScatterSub(resource=variable.handle, indices=rows, updates=change)


class Adam(tf.Module):
    """Adam (Kingma and Ba 2015, algorithm 1); the moments of a table's row change only in steps that touch the row.

    Args:
        variables: all that is trained, dense variables and tables.
        settings: not used; optimizers are made alike.

    Attributes:
        slots: the optimizer's own variables by name, one per trained variable, in their order.
    """

    def __init__(self, variables: Sequence[tf.Variable], settings: Pretrain) -> None:
        super().__init__()
        self.slots = {name: [tf.Variable(tf.zeros(v.shape)) for v in variables] for name in ("means", "squares")}

    def update(self, index: int, variable: tf.Variable, gradient: tf.Tensor, rate: tf.Tensor, step: tf.Tensor) -> None:
        """Update a dense variable inside the training graph; `step` int64 counts the steps taken before this one."""
        means, squares = (self.slots[name][index] for name in ("means", "squares"))
        power_1, power_2 = _powers(step)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=means.handle,
            v=squares.handle,
            beta1_power=power_1,
            beta2_power=power_2,
            lr=rate,
            beta1=BETA_1,
            beta2=BETA_2,
            epsilon=EPSILON,
            grad=gradient,
        )

    def update_rows(
        self,
        index: int,
        variable: tf.Variable,
        gradient: tf.Tensor,
        rows: tf.Tensor,
        rate: tf.Tensor,
        step: tf.Tensor,
    ) -> None:
        """Update rows int32 [N] of a table with their gradients [N, …]; a row that does not rise above the one before
        it only fills up a shape and is left alone."""
        means, squares = (self.slots[name][index] for name in ("means", "squares"))
        power_1, power_2 = _powers(step)
        first = tf.concat([[True], rows[1:] > rows[:-1]], 0)
        counts = tf.reshape(tf.cast(first, gradient.dtype), [-1] + [1] * (len(gradient.shape) - 1))
        mean, square = tf.gather(means, rows), tf.gather(squares, rows)
        d_mean = counts * (1 - BETA_1) * (gradient - mean)
        d_square = counts * (1 - BETA_2) * (gradient**2 - square)
        tf.raw_ops.ResourceScatterAdd(resource=means.handle, indices=rows, updates=d_mean)
        tf.raw_ops.ResourceScatterAdd(resource=squares.handle, indices=rows, updates=d_square)
        scale = rate * tf.sqrt(1 - power_2) / (1 - power_1)
        change = counts * scale * (mean + d_mean) / (tf.sqrt(square + d_square) + EPSILON)
        tf.raw_ops.ResourceScatterSub(resource=variable.handle, indices=rows, updates=change)


def _powers(step: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    taken = tf.cast(step + 1, tf.float32)
    return tf.pow(BETA_1, taken), tf.pow(BETA_2, taken)


OPTIMIZERS = {"adam": Adam, "adagrad": Adagrad}
