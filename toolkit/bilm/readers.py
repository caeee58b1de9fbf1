"""Which other programs refuse a shape of biLM, and why.

AllenNLP's part was found in its sources (2.x, `allennlp/modules/elmo.py` and `elmo_lstm.py`). simple_elmo 0.9.2 and the
inference of bilm-tf, of which it carries a copy, were run on each kind of model: they refuse what is said here, and
give the same vectors for the others.
"""

from dataclasses import dataclass

from toolkit.bilm.spec import BiLMSpec

ALLENNLP_CHARACTERS = 50  # the length of a word in AllenNLP, whatever options.json says


@dataclass(frozen=True)
class Refusal:
    """A reader that cannot read a model.

    Attributes:
        reader: "bilm-tf", "AllenNLP" or "simple_elmo".
        reason: what it cannot do, in words.
    """

    reader: str
    reason: str

    def __str__(self) -> str:
        return f"{self.reader} cannot read this model: {self.reason}"


def refusals(spec: BiLMSpec) -> list[Refusal]:
    """Return the readers that refuse a shape, each with its first reason; none for the shapes of the published models.

    bilm-tf reads words too, with `use_character_inputs=False` and the weights as its `embedding_weight_file`.
    """
    both = None if spec.bidirectional else "it always reads a backward direction (RNN_1), which a forward model lacks"
    widens = None
    if not spec.reads_words and spec.n_filters < spec.projection_dim:
        widens = f"its {spec.n_filters} filters are fewer than projection_dim {spec.projection_dim}"
    words = "it reads characters only, this model reads words" if spec.reads_words else None
    reasons = {
        "bilm-tf": both or widens,
        "AllenNLP": words or both or _allennlp(spec),
        "simple_elmo": words or both or widens,
    }
    return [Refusal(reader, reason) for reader, reason in reasons.items() if reason]


def _allennlp(spec: BiLMSpec) -> str | None:
    if not spec.skip:
        return "it supports residual connections only (use_skip_connections)"
    if not spec.has_projection:
        return f"it expects a projection (W_P_0), which dim = projection_dim = {spec.dim} does without"
    if spec.n_filters == spec.projection_dim:
        return f"it expects CNN_proj, which a model of projection_dim = filters = {spec.n_filters} does without"
    if spec.max_characters != ALLENNLP_CHARACTERS:
        return f"its words have {ALLENNLP_CHARACTERS} characters, this model's {spec.max_characters}"
    return None
