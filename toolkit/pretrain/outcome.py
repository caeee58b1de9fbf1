"""What a pretraining run says of itself at its end: the model card, results.json and the command's JSON document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolkit import __version__
from toolkit.bilm.backend import tf
from toolkit.bilm.folder import Softmax, save_model
from toolkit.files import room_for
from toolkit.memory import peak_memory_mb
from toolkit.pretrain.graph import TrainingGraph
from toolkit.pretrain.perplexity import Perplexity
from toolkit.pretrain.variables import named
from toolkit.runs.schema import MODEL
from toolkit.runs.writer import RunWriter
from toolkit.text.vocab import Vocabulary

ENDINGS = {
    "steps": "all steps are taken",
    "epochs": "all epochs are over",
    "minutes": "the minutes are over",
    "patience": "no better validation for pretrain.patience validations",
    "interrupt": "it was interrupted",
    "not finite": "a step met numbers that are not finite",
}


@dataclass(frozen=True)
class Outcome:
    """How a run ended and which of its states was exported.

    Attributes:
        steps: taken.
        tokens_per_step: targets a direction that a step reads.
        seconds: of training.
        ended: a key of `ENDINGS`.
        exported_step: the step whose weights are in the model folder.
        exported: their validation perplexity, None where those very weights were never validated.
        best_step: of the best validation, None where there was none.
        last: the validation perplexity of the last step, None where it was not validated.
        unigram: perplexity of the validation text under the training text's unigrams.
        compute_dtype: of matrix products.
    """

    steps: int
    tokens_per_step: int
    seconds: float
    ended: str
    exported_step: int
    exported: Perplexity | None
    best_step: int | None
    last: Perplexity | None
    unigram: float
    compute_dtype: str

    def __str__(self) -> str:
        what = "the best by validation" if self.exported_step == self.best_step else "the last good state"
        line = f"ended at step {self.steps} ({ENDINGS[self.ended]}); exported: step {self.exported_step}, {what}"
        if self.exported:
            line += f", validation perplexity (full softmax) {self.exported.mean:,.1f}"
        if self.last and self.exported_step != self.steps:
            line += f"; that of the last step is {self.last.mean:,.1f}"
        return line

    def card(self) -> dict[str, Any]:
        """Return what the model card says of the training; steps and tokens are those behind the exported weights."""
        return {
            "steps": self.exported_step,
            "tokens": self.exported_step * self.tokens_per_step,
            "validation_perplexity": _document(self.exported),
            **self._choice(),
            "compute_dtype": self.compute_dtype,
            "unigram_perplexity": self.unigram,
        }

    def results(self) -> dict[str, Any]:
        """Return results.json: each metric is that of the exported weights, `last` beside it that of the last step."""
        metrics = []
        if self.exported:
            common = {"split": "valid", "n": self.exported.n, "higher_is_better": False}
            last = self.last.metrics if self.last else {}
            for name, value in self.exported.metrics.items():
                metric = {"name": name, "value": value, "kind": "full", "best_step": self.best_step, **common}
                metrics.append(metric | ({"last": last[name]} if last else {}))
            metrics.append({"name": "unigram_perplexity", "value": self.unigram, **common})
        return {"metrics": metrics, "model": MODEL, "steps": self.steps, **self._choice()}

    def document(self, run: RunWriter) -> dict[str, Any]:
        """Return the JSON document of `toolkit pretrain`; its validation_perplexity is that of the exported weights."""
        tokens = self.steps * self.tokens_per_step
        return {
            "run": run.id,
            "model": str(run.folder / MODEL),
            "stopped": self.ended == "interrupt",
            "steps": self.steps,
            "tokens": tokens,
            "tokens_per_second": round(tokens / max(self.seconds, 1e-9), 1),
            "compute_dtype": self.compute_dtype,
            "peak_memory_mb": peak_memory_mb(),
            "validation_perplexity": _document(self.exported),
            "unigram_perplexity": self.unigram,
            **self._choice(),
        }

    def _choice(self) -> dict[str, Any]:
        return {
            "ended": self.ended,
            "exported_step": self.exported_step,
            "exported": "best" if self.exported_step == self.best_step else "last good",
            "best_step": self.best_step,
            "last_step": self.steps,
            "last_validation_perplexity": _document(self.last),
        }


def export(run: RunWriter, graph: TrainingGraph, vocabulary: Vocabulary, outcome: Outcome, origin: Mapping) -> None:
    """Write the model folder from a graph's present weights, and the run's results.

    Args:
        run: the model becomes `<run>/model`.
        graph: holds the weights to export.
        vocabulary: of its softmax.
        outcome: what is told of them.
        origin: what else the card says: the text, and for an adapted model its parent.

    Raises:
        DiskFullError: the model does not fit on the disk; one that was there before is as it was.
    """
    card = {
        "made_by": f"elmo-toolkit {__version__}",
        "tensorflow": tf.__version__,
        "run": run.id,
        **origin,
        **outcome.card(),
    }
    softmax = Softmax(*(variable.numpy() for variable in graph.softmax))
    with room_for(run.folder / MODEL, sum(4 * variable.shape.num_elements() for _, variable in named(graph))):
        mark = save_model(run.folder / MODEL, graph.bilm, vocabulary, softmax, card)
    run.update(model_fingerprint=mark)
    run.results(outcome.results())


def _document(perplexity: Perplexity | None) -> dict[str, Any] | None:
    return perplexity.document() if perplexity else None
