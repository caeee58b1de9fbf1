"""Names of a training graph's variables: for checkpoints, and in a user's words."""

from collections.abc import Iterator

from toolkit.bilm.backend import tf
from toolkit.pretrain.graph import TrainingGraph


def named(graph: TrainingGraph) -> list[tuple[str, tf.Variable]]:
    """Return (path, variable) of all that has gradients, in their order: "bilm.layers.0.kernel", "softmax_weight"."""
    paths: dict[int, str] = {}
    for path, variable in _walk(graph, ""):
        paths.setdefault(id(variable), path)  # the first path is that of its owner
    return [(paths[id(variable)], variable) for variable in graph.variables_trained]


def part_of(path: str) -> str:
    """Return the part of the network that a variable belongs to; a path that no rule knows stands for itself."""
    match path.split("."):
        case ["bilm", "char_cnn", "char_embed"]:
            return "character vectors"
        case ["bilm", "char_cnn", "kernels" | "biases", *_]:
            return "character CNN"
        case ["bilm", "char_cnn", "highways", number, *_]:
            return f"highway {int(number) + 1}"
        case ["bilm", "char_cnn", "projection", *_]:
            return "projection of the character CNN"
        case ["bilm", "layers", number, what]:
            return f"LSTM layer {int(number) + 1} {what}"
        case ["bilm", "embedding"]:
            return "word vectors"
        case ["softmax_weight" | "softmax_bias"]:
            return "softmax"
    return path


def _walk(node: object, path: str) -> Iterator[tuple[str, tf.Variable]]:
    """Yield (path, variable) of all that hangs on a module, a list or a dictionary."""
    if isinstance(node, tf.Variable):
        yield path, node
        return
    if isinstance(node, tf.Module):
        members = vars(node).items()
    elif isinstance(node, dict):
        members = node.items()
    elif isinstance(node, (list, tuple)):
        members = enumerate(node)
    else:
        return
    for name, member in members:
        if not str(name).startswith("_"):
            yield from _walk(member, f"{path}.{name}".lstrip("."))
