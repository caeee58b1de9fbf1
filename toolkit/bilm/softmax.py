"""The output layer that both directions share: sampled softmax for training, the full one for perplexity."""

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.bilm.compiled import compiled


def log_uniform_sample(size: int, negatives: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw distinct words by the log-uniform (Zipfian) distribution, as TensorFlow's default sampler does.

    Args:
        size: V, words sorted by falling frequency.
        negatives: how many distinct words; from V on, all words are returned.
        rng: the source of chance.

    Returns:
        int32 ids [S], and float32 [V]: the logarithm of how often each word was to be expected in such a sample, by
        which sampled logits are corrected (0 where all words are taken).
    """
    if negatives >= size:
        return np.arange(size, dtype=np.int32), np.zeros(size, np.float32)
    drawn = np.empty(0, np.int64)
    while True:
        # Truncation after exp gives word k the probability log((k + 2) / (k + 1)) / log(V + 1).
        more = np.exp(rng.random(4 * negatives) * np.log(size + 1.0)).astype(np.int64) - 1
        drawn = np.concatenate([drawn, np.minimum(more, size - 1)])
        words, first = np.unique(drawn, return_index=True)
        if len(words) >= negatives:
            break
    order = np.argsort(first)[:negatives]
    tries = first[order[-1]] + 1
    k = np.arange(size)
    probability = np.log((k + 2.0) / (k + 1.0)) / np.log(size + 1.0)
    expected = -np.expm1(tries * np.log1p(-probability))
    return words[order].astype(np.int32), np.log(expected).astype(np.float32)


# Nats by which a candidate may be more likely than the true word; more counts as this, or float32 would overflow.
MOST_AHEAD = 70.0


@compiled
def _pass(logits: tf.Tensor, true: tf.Tensor, hit: tuple[tf.Tensor, tf.Tensor], bias: tf.Tensor) -> tuple:
    """Loss and gradient of the logits in one pass over them; a candidate that is the target itself does not count.

    All is taken relative to the true logit instead of the largest one, which would cost a pass of its own.
    """
    targets, sampled = hit
    same = targets[:, :, None] == sampled[:, None]
    ahead = tf.cast(logits, tf.float32) + (bias[:, None] - true[..., None])
    e = tf.exp(tf.where(same, -1e30, tf.minimum(ahead, MOST_AHEAD)))
    total = 1.0 + tf.reduce_sum(e, -1)
    loss = tf.reduce_mean(tf.math.log(total))
    scale = 1.0 / tf.cast(tf.size(true), tf.float32)
    return loss, tf.cast(e * (scale / total)[..., None], logits.dtype), scale * (1.0 / total - 1.0)


@tf.custom_gradient
def sampled_softmax_loss(
    h: tf.Tensor, weight: tf.Tensor, bias: tf.Tensor, targets: tf.Tensor, sampled: tf.Tensor, log_expected: tf.Tensor
):
    """Mean sampled-softmax loss of both directions (Jean et al. 2015; candidates drawn for each direction).

    Args:
        h: [2, N, P], what the LSTMs give for N tokens a direction, of the dtype that products use.
        weight: [R, P] of the same dtype, the rows of the softmax that this step touches.
        bias: float32 [R].
        targets: int32 [2, N], the row of each token's true word.
        sampled: int32 [2, S], the rows of each direction's candidates.
        log_expected: float32 [2, R], logarithm of each row's expected count among that direction's candidates.

    Returns:
        the loss in nats a token, a float32 scalar; its gradient reaches h, weight and bias.
    """
    w_sampled, w_true = tf.gather(weight, sampled), tf.gather(weight, targets)
    correction = bias - log_expected
    b_sampled = tf.gather(correction, sampled, batch_dims=1)
    b_true = tf.gather(correction, targets, batch_dims=1)
    true = tf.reduce_sum(tf.cast(h, tf.float32) * tf.cast(w_true, tf.float32), -1) + b_true
    loss, d_logits, d_true = _pass(tf.matmul(h, w_sampled, transpose_b=True), true, (targets, sampled), b_sampled)

    def gradient(upstream: tf.Tensor) -> tuple:
        d_true_ = tf.cast(d_true, h.dtype)[..., None]
        dh = tf.matmul(d_logits, w_sampled) + d_true_ * w_true
        rows = tf.concat([tf.reshape(sampled, [-1]), tf.reshape(targets, [-1])], 0)
        dw = [tf.matmul(d_logits, h, transpose_a=True), d_true_ * h]
        dw = tf.concat([tf.cast(tf.reshape(part, [-1, h.shape[-1]]), tf.float32) for part in dw], 0)
        # The sum over tokens as a product with ones (8 of them, a size that products like).
        ones = tf.ones_like(h[:, :, :8])
        db = [tf.cast(tf.matmul(ones, d_logits, transpose_a=True)[:, 0], tf.float32), d_true]
        db = tf.concat([tf.reshape(part, [-1]) for part in db], 0)
        count = tf.shape(bias)[0]
        dw = upstream * tf.math.unsorted_segment_sum(dw, rows, count)
        db = upstream * tf.math.unsorted_segment_sum(db, rows, count)
        return tf.cast(upstream, h.dtype) * dh, tf.cast(dw, weight.dtype), db, None, None, None

    return loss, gradient


@tf.function(reduce_retracing=True, autograph=False)
def full_softmax_nll(h: tf.Tensor, weight: tf.Tensor, bias: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    """Negative log-likelihood under the full softmax.

    Args:
        h: float32 [N, P].
        weight, bias: float32 [V, P] and [V].
        targets: int32 [N].

    Returns:
        float32 [N], in nats.
    """
    logits = tf.matmul(h, weight, transpose_b=True) + bias
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, logits)
