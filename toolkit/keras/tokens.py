"""Batches of sentences as tensors: strings to padded tokens, tokens to character ids, distinct rows."""

from toolkit.bilm.backend import tf
from toolkit.text.chars import BEGIN_WORD, END_WORD, PADDING, SENTENCE_MARKS

# What `str.split` parts words at, as a class of RE2.
_WHITE_SPACE = (
    r"[\x{9}-\x{d}\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}]+"
)


def padded_tokens(texts: tf.Tensor) -> tf.Tensor:
    """Return tokens, string [B, T], padded on the right with "".

    Args:
        texts: such tokens, which are returned as they are; or string [B], sentences in UTF-8 whose tokens are parted by
            white space, as `str.split` sees it.
    """
    if texts.shape.rank == 2:
        return texts
    return tf.strings.split(tf.strings.regex_replace(texts, _WHITE_SPACE, " ")).to_tensor("")


def present(inputs: tf.Tensor) -> tf.Tensor:
    """Return where the tokens of each sentence are, bool [B, T]: everything up to the last one that is no padding.

    Args:
        inputs: string [B, T] or [B] as for `padded_tokens`, or character ids [B, T, C], where padding is all 0.
    """
    filled = padded_tokens(inputs) != "" if inputs.dtype == tf.string else tf.reduce_any(inputs != 0, -1)
    places = tf.range(1, tf.shape(filled)[1] + 1)
    lengths = tf.reduce_max(tf.pad(tf.where(filled, places, 0), [[0, 0], [1, 0]]), 1)
    return tf.sequence_mask(lengths, tf.shape(filled)[1])


def well_formed(inputs: tf.Tensor) -> tf.Tensor:
    """Return inputs, string [B, T] or ids [B, T, C], after a check of the habits of other libraries.

    Raises:
        tf.errors.InvalidArgumentError: a row begins with padding or a boundary token, or is one token that is a whole
            sentence.
    """
    filled = inputs != "" if inputs.dtype == tf.string else tf.reduce_any(inputs != 0, -1)
    padded_left = tf.reduce_any(tf.reduce_any(filled, 1) & ~tf.reduce_any(filled[:, :1], 1))
    checks = [
        tf.debugging.assert_equal(padded_left, False, "a sentence begins with padding: pad on the right"),
    ]
    if inputs.dtype == tf.string:
        marked = tf.reduce_any([tf.reduce_any(inputs[:, :1] == mark) for mark in SENTENCE_MARKS])
        one = tf.reduce_sum(tf.cast(filled, tf.int32), 1) == 1
        blank = tf.reduce_any(one[:, None] & tf.strings.regex_full_match(inputs, rf"(?s).*\S{_WHITE_SPACE}\S.*"))
        checks += [
            tf.debugging.assert_equal(marked, False, "a sentence begins with <S> or </S>: both are added, remove them"),
            tf.debugging.assert_equal(blank, False, "a sentence is one token: give texts as [B], or tokens as [B, T]"),
        ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return tf.identity(inputs)


def character_ids(words: tf.Tensor, max_characters: int) -> tf.Tensor:
    """Return what `toolkit.text.chars.char_rows` returns, as part of a graph.

    Args:
        words: string [n], in UTF-8.
        max_characters: C.

    Returns:
        int32 [n, C].
    """
    room = max_characters - 2
    data = tf.cast(tf.io.decode_raw(words, tf.uint8, fixed_length=room), tf.int32)
    lengths = tf.minimum(tf.strings.length(words), room)
    for mark, character in SENTENCE_MARKS.items():
        found = words == mark
        data = tf.where(found[:, None] & (tf.range(room) == 0), character - 1, data)
        lengths = tf.where(found, 1, lengths)
    places = tf.range(room + 1)
    tail = tf.where(places == lengths[:, None], END_WORD, PADDING)
    data = tf.where(places < lengths[:, None], tf.pad(data + 1, [[0, 0], [0, 1]]), tail)
    return tf.pad(data, [[0, 0], [1, 0]], constant_values=BEGIN_WORD)


def trimmed(ids: tf.Tensor, widest_filter: int) -> tf.Tensor:
    """Return character ids without the columns that are padding in all rows, save those that the filters need.

    Args:
        ids: int32 [U, C]; every row ends in a run of equal ids.
        widest_filter: this many columns stay behind the longest word, so that the maximum over all windows, one that
            holds nothing but padding included, is what it was.
    """
    columns = tf.shape(ids)[1]
    inside = tf.where(ids != ids[:, -1:], tf.range(1, columns + 1), 0)
    return ids[:, : tf.minimum(columns, tf.maximum(tf.reduce_max(inside), 0) + widest_filter)]
