"""The dump of `toolkit embed` on a Ray cluster: each task writes a part, a dump of its own; a file links to them."""

import functools
import logging
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import toolkit
from toolkit.bilm.folder import Model, load_model
from toolkit.config import Embed
from toolkit.embed.dump import DEFAULTS, announce, attributes_of, document_of, index_of, is_complete, tokens_of
from toolkit.embed.dumpfile import FORMAT, SENTENCE_TO_INDEX, open_embeddings
from toolkit.embed.dumpwriter import DumpWriter, check_attributes, check_layers, choose_layers
from toolkit.embed.encoder import Compute, Encoder
from toolkit.embed.states import StateMode
from toolkit.embed.survey import sections, survey
from toolkit.errors import DataError, ToolkitError, UsageError
from toolkit.files import read_json, write_json
from toolkit.hdf5 import writing_hdf5
from toolkit.progress import Progress

logger = logging.getLogger(__name__)

PART_TOKENS = 250_000  # of a task, sentence marks included
RETRIES = 3  # of a part whose worker died
AHEAD = 2  # tasks that wait, for each one that runs
ATTRIBUTES = "parts.json"


def dump_on_ray(
    address: str,
    model: Model,
    file: Path,
    out: Path,
    settings: Embed = DEFAULTS,
    compress: bool = False,
    sentence_to_index: bool = False,
    resume: bool = False,
    part_tokens: int = PART_TOKENS,
) -> dict[str, Any]:
    """Encode a text on a Ray cluster and write the dump: `OUT`, which holds links to the parts in `OUT.parts/`.

    Workers need the toolkit installed, and have to see the model and the folder of `out` under the same paths; the
    text is sent to them. A part whose worker dies is done again by another one. The two belong together: a link is
    relative, so that they may be moved, both.

    Args:
        address: of a running cluster, as `ray.init` takes it; "local" starts Ray on this machine for the time of the
            dump. A program that is connected to Ray already stays connected, whatever the address.
        part_tokens: tokens of a part, sentence marks included.
        model, file, out, settings, compress, sentence_to_index: see `toolkit.embed.dump`.
        resume: keep the parts that an interrupted dump has finished.

    Returns:
        the JSON document of `toolkit.embed.dump`, with parts and kept_parts.

    Raises:
        UsageError: ray is not installed or not at that address, the state is "stateful"; and as `toolkit.embed.dump`.
        DataError, DiskFullError: as `toolkit.embed.dump`.
        ToolkitError: the workers of a part died again and again.
    """
    if settings.state == "stateful":
        raise UsageError("--state stateful is one stream, which cannot be parted among workers: leave --ray out")
    check_layers(settings.layers, model.spec.n_layers)
    text = survey(file, model.vocabulary if model.spec.reads_words else None)
    attributes = attributes_of(model, text, settings, compress, sentence_to_index)
    attributes |= {"part_tokens": part_tokens}
    started, counts, kept, done = time.monotonic(), [], 0, 0
    if not is_complete(out, attributes, resume):
        announce(text, text.size(model.spec, settings.layers, settings.dtype), compress)
        folder = _prepare(Path(f"{out}.parts"), attributes, resume)
        with _ray(address) as ray, Progress("embedding", text.tokens, "tokens") as progress:
            tasks = _Tasks(ray, model, attributes, compress)
            for section in sections(tokens_of(file, 0), part_tokens):
                part, tokens = folder / f"{len(counts):06}.h5", sum(map(len, section))
                counts.append(len(section))
                if part.exists():
                    kept += 1
                    progress.advance(tokens)
                else:
                    done += tokens
                    progress.advance(tasks.add(part, section, tokens))
            progress.advance(tasks.wait_for_all())
        if sum(counts) != text.sentences:
            raise DataError(f"{file} changed while it was read: dump it anew")
        _link(out, folder, counts, {**attributes, "tokens": text.tokens}, index_of(file) if sentence_to_index else None)
    document = document_of(out, text, model, attributes, time.monotonic() - started, done)
    return {**document, "parts": len(counts), "kept_parts": kept}


def _prepare(folder: Path, attributes: Mapping[str, Any], resume: bool) -> Path:
    if folder.exists():
        if not resume:
            raise UsageError(f"{folder} holds parts of an unfinished dump: go on with --resume, or remove it")
        check_attributes(folder, read_json(folder / ATTRIBUTES), attributes)
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / ATTRIBUTES, attributes)
    return folder


@contextmanager
def _ray(address: str) -> Iterator[Any]:
    try:
        import ray
    except ImportError:
        raise UsageError("--ray needs Ray: pip install 'elmo-toolkit[ray]'") from None
    own = not ray.is_initialized()
    if own:
        try:
            ray.init(address=address, include_dashboard=False if address == "local" else None, log_to_driver=False)
        except (ConnectionError, ValueError) as error:
            raise UsageError(f"no Ray cluster at {address!r}: {error}") from None
    try:
        yield ray
    finally:
        if own:
            ray.shutdown()


class _Tasks:
    """Parts that are being written, never many more than the cluster works on."""

    def __init__(self, ray: Any, model: Model, attributes: Mapping[str, Any], compress: bool) -> None:
        self._ray, self._model, self._attributes, self._compress = ray, model, attributes, compress
        # A task has one core; TensorFlow would take all of the machine in each.
        threads = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}
        options = {"num_cpus": 1, "max_retries": RETRIES, "runtime_env": {"env_vars": threads}}
        self._write = ray.remote(write_part).options(**options)
        self._running: dict[Any, int] = {}

    def add(self, part: Path, section: list, tokens: int) -> int:
        """Start a part; return how many tokens others have finished meanwhile."""
        text = "\n".join(" ".join(sentence) for sentence in section)
        path = str(self._model.path.absolute())
        task = self._write.remote(str(part.absolute()), path, text, self._attributes, self._compress)
        self._running[task] = tokens
        most = max(1, int(self._ray.cluster_resources().get("CPU", 1)) * (1 + AHEAD))
        return self._wait() if len(self._running) >= most else 0

    def wait_for_all(self) -> int:
        """Return how many tokens were finished."""
        finished = 0
        while self._running:
            finished += self._wait()
        return finished

    def _wait(self) -> int:
        (task,), _ = self._ray.wait(list(self._running), num_returns=1)
        try:
            self._ray.get(task)
        except self._ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, ToolkitError):
                raise error.cause from None
            raise
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[0]
            raise ToolkitError(f"a part failed {RETRIES + 1} times ({reason}): --resume keeps the others") from None
        return self._running.pop(task)


def write_part(part: str, model: str, text: str, attributes: Mapping[str, Any], compress: bool) -> None:
    """Encode some lines and write them as a dump of their own: what a worker does.

    Args:
        part: the file to be; it appears when it is whole.
        model: path of the model.
        text: the lines.
        attributes: of the whole dump.
        compress: see `DumpWriter`.

    Raises:
        UsageError: the model at that path is another one on this machine.
    """
    fingerprint = attributes["model_fingerprint"]
    encoder, memory = _encoder(model, *(attributes[name] for name in ("state", "batch_tokens", "compute")))
    if encoder.model.fingerprint != fingerprint:
        found = encoder.model.fingerprint
        raise UsageError(f"the model {model} is {found} on {platform.node()}, {fingerprint} where the dump was started")
    encoder.restore(memory)  # a part depends on its text alone, not on what its worker encoded before
    layers, dtype = attributes["layers"], attributes["dtype"]
    with DumpWriter(Path(part), attributes, compress) as writer:
        for embeddings in encoder.encode(line.split() for line in text.split("\n")):
            writer.write(choose_layers(embeddings, layers).astype(dtype, copy=False))


@functools.lru_cache(maxsize=1)
def _encoder(
    model: str, state: StateMode, batch_tokens: int, compute: Compute
) -> tuple[Encoder, dict[str, np.ndarray]]:
    """Return an encoder, kept from task to task, and its memory before it encoded anything."""
    encoder = Encoder(load_model(Path(model)), state, batch_tokens, compute)
    return encoder, {name: array.copy() for name, array in encoder.memory().items()}


def _link(out: Path, folder: Path, counts: list[int], attributes: Mapping[str, Any], index: str | None) -> None:
    """Write the file of links once every part holds what it should."""
    with writing_hdf5(out) as file:
        number = 0
        for place, count in enumerate(counts):
            part = folder / f"{place:06}.h5"
            with open_embeddings(part) as found:
                if len(found) != count:
                    raise DataError(f"{part} holds {len(found)} sentences instead of {count}: remove it and --resume")
            target = f"{folder.name}/{part.name}".encode()
            for local in range(count):
                file.id.links.create_external(str(number + local).encode(), target, str(local).encode())
            number += count
        for name, value in {"format": FORMAT, "toolkit_version": toolkit.__version__, **attributes}.items():
            file.attrs[name] = value
        if index is not None:
            file.create_dataset(SENTENCE_TO_INDEX, (1,), dtype=h5py.string_dtype())[0] = index
        file.attrs["sentences"], file.attrs["complete"] = number, True
