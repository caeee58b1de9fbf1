"""The training graph: forward pass of a batch, loss, gradients, clipping and the optimizer's step.

Letter for shapes: R directions, 2, or 1 of a forward model.
"""

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.char_cnn_groups import group_widths, grouped_token_vectors
from toolkit.bilm.compiled import compiled, compiles_whole_step
from toolkit.bilm.lstm_training import training_layer
from toolkit.bilm.model import BiLM
from toolkit.bilm.softmax import sampled_softmax_loss
from toolkit.config import Pretrain
from toolkit.pretrain.averages import Averages
from toolkit.pretrain.batches import Batch, fixed_shapes
from toolkit.pretrain.distribute import ALONE, Replicas
from toolkit.pretrain.optimizers import OPTIMIZERS


class TrainingGraph(tf.Module):
    """The variables of training and the compiled step.

    Args:
        bilm: the weights to train.
        vocabulary_size: V.
        settings: batch size, unroll steps, optimizer, averages, dropout, seed.
        dtype: of matrix products.
        replicas: those that train together; with several, the weights and this graph are made in their `scope`.
        whole: compile the step with XLA as one; None decides by the hardware. Replicas that train together exchange
            gradients within the step, which XLA cannot hold.
        bias: float32 [V] that the softmax starts with; None starts at zero, as bilm-tf does.
    """

    def __init__(
        self,
        bilm: BiLM,
        vocabulary_size: int,
        settings: Pretrain,
        dtype: tf.DType,
        replicas: Replicas = ALONE,
        whole: bool | None = None,
        bias: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        self.replicas = replicas
        spec, self.settings, self.dtype = bilm.spec, settings, dtype
        self.bilm = bilm
        # N(0, 1 / sqrt(P)) as in bilm-tf. Rows that start at zero, all moved alike by the first steps, learn less.
        shape = (vocabulary_size, spec.projection_dim)
        rows = tf.random.stateless_normal(shape, (settings.seed, 0)) / spec.projection_dim**0.5
        self.softmax_weight = tf.Variable(rows)
        self.softmax_bias = tf.Variable(tf.zeros(vocabulary_size) if bias is None else bias)
        # The word table of a model that reads words: of its rows, like those of the softmax, a step touches few.
        self.words = [bilm.embedding] if spec.reads_words else []
        self.dense = [v for v in bilm.trainable_variables if v is not bilm.embedding]
        self.optimizer = OPTIMIZERS[settings.optimizer](self.variables_trained, settings)
        self.averages = Averages(self.variables_trained, settings.average)
        states = bilm.zero_state(settings.batch_size)
        self.states = replicas.own_variable(states[0]), replicas.own_variable(tf.cast(states[1], dtype))
        self.joined_states = [replicas.joined(state, axis=2) for state in self.states]
        # Counted inside the step: Ctrl-C can come between the step's end and any line behind it.
        self.steps = replicas.own_variable(tf.constant(0, tf.int64))
        self._layer = training_layer(spec, settings.unroll_steps, dtype)
        self.whole = replicas.strategy is None and (compiles_whole_step() if whole is None else whole)
        widths = (spec.max_characters,) if self.whole else group_widths(spec)
        # A fixed signature: the unrolled graph is traced once, whatever the number of distinct words.
        integers = lambda *shape: tf.TensorSpec(shape, tf.int32)  # noqa: E731
        directions = spec.directions
        signature = (
            (integers(None),) if self.words else tuple(integers(None, width) for width in widths),
            integers(settings.unroll_steps, directions, settings.batch_size),
            integers(None),
            integers(directions, None),
            integers(directions, None),
            tf.TensorSpec((directions, None), tf.float32),
            tf.TensorSpec((None, settings.unroll_steps, directions, settings.batch_size, spec.projection_dim), tf.bool),
            tf.TensorSpec((), tf.float32),
        )
        if replicas.strategy is None:
            self._step = tf.function(
                self._take_step, input_signature=signature, jit_compile=self.whole or None, autograph=False
            )
        else:
            self._step = tf.function(
                self._take_joint_step, input_signature=(signature,) * len(replicas.members), autograph=False
            )

    @property
    def softmax(self) -> tuple[tf.Variable, tf.Variable]:
        """Weight [V, P] and bias [V] of the output layer."""
        return self.softmax_weight, self.softmax_bias

    @property
    def variables_trained(self) -> list[tf.Variable]:
        """What the gradients are of, in their order: the dense ones, the softmax, the word table."""
        return [*self.dense, *self.softmax, *self.words]

    def forward(
        self, groups: tuple[tf.Tensor, ...], inputs: tf.Tensor, states: tuple, kept: tf.Tensor | None
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, tf.Tensor]]:
        """Run the biLM over T steps of B rows.

        Args:
            groups: int32 [U_g, C_g] each, character ids of distinct words; of a model that reads words one int32 [U],
                rows of its table.
            inputs: int32 [T, R, B], places in the concatenated groups.
            states: cells [L, R, B, D] float32 and outputs [L, R, B, P].
            kept: bool [L + 1, T, R, B, P], the dropout masks; None runs without dropout.

        Returns:
            [T, R, B, P] of the top layer, and the states behind the last step.
        """
        if self.words:
            vectors = tf.gather(self.bilm.embedding, groups[0])
        else:
            vectors = grouped_token_vectors(self.bilm.char_cnn, groups, self.dtype)
        x = tf.cast(tf.gather(vectors, inputs), self.dtype)  # in this order a word's gradients are summed in float32
        cells, hiddens = [], []
        for index, layer in enumerate(self.bilm.layers):
            x = self._dropped(x, kept, index)
            weights = [tf.cast(layer.kernel, self.dtype), layer.bias]
            if layer.projection is not None:
                weights.append(tf.cast(layer.projection, self.dtype))
            y, c, h = self._layer(x, states[0][index], states[1][index], *weights)
            x = y + x if self.bilm.spec.skip and index else y  # the residual adds the dropped input, as in bilm-tf
            cells.append(c)
            hiddens.append(h)
        return self._dropped(x, kept, len(self.bilm.layers)), (tf.stack(cells), tf.stack(hiddens))

    def _dropped(self, x: tf.Tensor, kept: tf.Tensor | None, place: int) -> tf.Tensor:
        if kept is None or self.settings.dropout == 0:
            return x
        return _dropout(x, kept[place], self.settings.dropout)

    def train(self, *shares: Batch, rate: float | None = None) -> tuple[float, float]:
        """Take one step and return the sampled loss (nats a token, mean of the directions) and the gradients' norm.

        Where the norm is not a finite number no weight is changed.

        Args:
            shares: one batch a replica of this process, in their order; all workers must take the step.
            rate: the learning rate; None takes the settings' peak.
        """
        rate = np.float32(self.settings.learning_rate if rate is None else rate)
        if self.whole:
            shares = tuple(fixed_shapes(batch, self.bilm.spec) for batch in shares)
        arguments = [(b.groups, b.inputs, b.rows, b.targets, b.sampled, b.log_expected, b.kept, rate) for b in shares]
        loss, norm = self._step(*arguments[0]) if self.replicas.strategy is None else self._step(*arguments)
        return float(loss), float(norm)

    def _take_joint_step(self, *shares: tuple) -> tuple[tf.Tensor, tf.Tensor]:
        return self.replicas.run(self._take_step, shares)

    def gradients(self, groups, inputs, rows, targets, sampled, log_expected, kept):  # see Batch
        """Return the loss of a batch, its gradients (in the order of `variables_trained`) and the states behind it."""
        with tf.GradientTape() as tape:
            top, states = self.forward(groups, inputs, self.states, kept)
            spec = self.bilm.spec
            h = tf.reshape(tf.transpose(top, [1, 0, 2, 3]), [spec.directions, -1, spec.projection_dim])
            table = [tf.gather(variable, rows) for variable in self.softmax]
            tape.watch(table)
            loss = sampled_softmax_loss(h, tf.cast(table[0], self.dtype), table[1], targets, sampled, log_expected)
            # bilm-tf takes the gradient of the loss of a whole row, not of a token; its learning rates mean that.
            total = loss * float(self.settings.unroll_steps)
        gradients = tape.gradient(total, self.dense + table + self.words)
        # The word table was gathered once, at distinct rows: the values of its gradient are those rows' own.
        values = [g.values for g in gradients[len(self.dense + table) :]]
        gradients = [*(tf.convert_to_tensor(g) for g in gradients[: len(self.dense + table)]), *values]
        return loss, gradients, states

    def _take_step(self, groups, inputs, rows, targets, sampled, log_expected, kept, rate):  # see Batch
        loss, gradients, states = self.gradients(groups, inputs, rows, targets, sampled, log_expected, kept)
        loss, *gradients = self.replicas.mean([loss, *gradients])
        norm, bound = tf.linalg.global_norm(gradients), self.settings.clip_norm
        # Once training has settled most steps need no clipping: their gradients are passed on, not multiplied by 1.
        clipped = tf.cond(norm > bound, lambda: [bound / norm * g for g in gradients], lambda: gradients)
        touched = [rows, rows, *groups] if self.words else [rows, rows]
        tf.cond(tf.math.is_finite(norm), lambda: self._apply(clipped, touched, states, rate), lambda: tf.no_op())
        return loss, norm

    def _apply(
        self,
        gradients: list[tf.Tensor],
        touched: list[tf.Tensor],
        states: tuple[tf.Tensor, tf.Tensor],
        rate: tf.Tensor,
    ) -> tf.Operation:
        """Move the weights; of sparse tables the touched rows."""
        step, dense = tf.identity(self.steps), len(self.dense)
        for index, (variable, gradient) in enumerate(zip(self.variables_trained, gradients, strict=True)):
            if index < dense:
                self.optimizer.update(index, variable, gradient, rate, step)
            else:
                self.optimizer.update_rows(index, variable, gradient, touched[index - dense], rate, step)
        for variable, value in zip(self.states, states, strict=True):
            variable.assign(value)
        self.steps.assign_add(1)
        self.averages.update(step + 1)
        return tf.no_op()


@compiled
def _dropout(x: tf.Tensor, kept: tf.Tensor, rate: float) -> tf.Tensor:
    return tf.where(kept, x / tf.cast(1.0 - rate, x.dtype), tf.zeros_like(x))
