"""Training on several devices or machines with tf.distribute: who takes part, and what they tell each other.

A replica is one copy of the weights on one device; a worker is one process, with one replica a device. Every replica
reads its own rows of the joined batch, gradients are averaged over all replicas, and each replica applies the same
update to its own copy. Worker 0, the chief, alone writes the run folder.
"""

import json
import logging
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from types import FrameType
from typing import Any

import numpy as np

from toolkit.bilm.backend import tf
from toolkit.errors import DataError, ToolkitError, UsageError

logger = logging.getLogger(__name__)

MESSAGE = 1024  # bytes of JSON that a worker tells the others at a time
SHAPE = '{"cluster": {"worker": ["host:port", …]}, "task": {"type": "worker", "index": 0}}'
_ADDRESS = re.compile(r"\S+:\d{1,5}")
# What TensorFlow raises in the others when a worker is gone, whatever they were about to do together.
_LOST = (
    tf.errors.UnavailableError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.FailedPreconditionError,
)


class WorkerLostError(ToolkitError):
    """Another worker of the job has gone: this one cannot go on alone."""


@dataclass(frozen=True)
class Cluster:
    """The workers of a job, from TF_CONFIG.

    Attributes:
        workers: host:port of each.
        index: which of them this process is.
    """

    workers: tuple[str, ...]
    index: int


def cluster_from(environment: Mapping[str, str]) -> Cluster | None:
    """Read TF_CONFIG.

    Returns:
        the job's workers, or None without TF_CONFIG and for a single worker.

    Raises:
        UsageError: TF_CONFIG is not JSON of the right shape.
    """
    text = environment.get("TF_CONFIG", "").strip()
    if not text:
        return None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"TF_CONFIG is not valid JSON ({error}): it must be like {SHAPE}") from None
    if document == {}:
        return None
    jobs = document.get("cluster") if isinstance(document, dict) else None
    workers = jobs.get("worker") if isinstance(jobs, dict) else None
    if not isinstance(workers, list) or not workers:
        raise UsageError(f"TF_CONFIG has no list cluster.worker: it must be like {SHAPE}")
    if others := sorted(jobs.keys() - {"worker"}):
        raise UsageError(f"TF_CONFIG names the job {others[0]!r}: all processes of a job here are workers")
    for worker in workers:
        if not isinstance(worker, str) or not _ADDRESS.fullmatch(worker):
            raise UsageError(f"TF_CONFIG: worker {worker!r} is not host:port")
    if len(set(workers)) < len(workers):
        raise UsageError(f"TF_CONFIG names a worker twice: {', '.join(workers)}")
    task = document.get("task")
    if not isinstance(task, dict) or task.get("type") != "worker":
        raise UsageError(f"TF_CONFIG has no task of the type 'worker': it must be like {SHAPE}")
    index = task.get("index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(workers):
        raise UsageError(f"TF_CONFIG: task.index is {index!r}, there are the workers 0 to {len(workers) - 1}")
    return Cluster(tuple(workers), index) if len(workers) > 1 else None


class Replicas:
    """All that train together, seen from one process. Without a strategy it is one replica in one process.

    Attributes:
        strategy: of tf.distribute, None for a single replica.
        workers: host:port of each process; empty for one process.
        index: which of the workers this is.
        count: replicas of all workers.
        members: the numbers of this process's replicas.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None = None, cluster: Cluster | None = None) -> None:
        self.strategy = strategy
        self.workers, self.index = (cluster.workers, cluster.index) if cluster else ((), 0)
        self.count = strategy.num_replicas_in_sync if strategy else 1
        local = self.count // max(1, len(self.workers))
        self.members = range(self.index * local, (self.index + 1) * local)
        self._asked: int | None = None  # the signal that asked this worker to stop
        self._gather = tf.function(self._gathered, input_signature=[tf.TensorSpec([MESSAGE], tf.float32)])

    def __str__(self) -> str:
        if not self.workers:
            return f"{self.count} replicas"
        return f"{self.count} replicas in {len(self.workers)} workers"

    @property
    def chief(self) -> bool:
        """Whether this process writes the run."""
        return self.index == 0

    # Inside the training step.

    def scope(self) -> AbstractContextManager:
        """Return the context in which the variables of training are made."""
        return self.strategy.scope() if self.strategy else nullcontext()

    def run(self, function: Callable, shares: Sequence[tuple]) -> Any:
        """Call a function in each replica of this process with its share; to be traced in a tf.function.

        Args:
            function: takes the tensors of one share; its results are the same in all replicas.
            shares: one a replica of this process.

        Returns:
            the results of the first replica.
        """

        def replica() -> Any:
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            return function(*shares[int(tf.get_static_value(tf.convert_to_tensor(number))) - self.members.start])

        return tf.nest.map_structure(
            lambda result: self.strategy.experimental_local_results(result)[0], self.strategy.run(replica)
        )

    def mean(self, tensors: list[tf.Tensor]) -> list[tf.Tensor]:
        """Return the means of tensors over all replicas; called inside `run`."""
        if self.strategy is None:
            return tensors
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.MEAN, tensors)

    def own_variable(self, value: tf.Tensor) -> tf.Variable:
        """Make a variable that each replica sets for itself."""
        return tf.Variable(
            value,
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )

    def joined(self, variable: tf.Variable, axis: int) -> "tf.Variable | Joined":
        """Return the view of such a variable in which the replicas' values stand one behind the other on an axis."""
        return Joined(self, variable, axis) if self.strategy else variable

    # Between the workers.

    def everyone(self, value: Any) -> list[Any]:
        """Tell all workers a small JSON value and return what each has told, in their order; all must call it."""
        if not self.workers:
            return [value]
        text = json.dumps(value).encode()
        if len(text) > MESSAGE:
            raise ValueError(f"a message of {len(text)} bytes, at most {MESSAGE} are passed")
        told = self._gather(np.frombuffer(text.ljust(MESSAGE), np.uint8).astype(np.float32)).numpy()
        return [json.loads(row.astype(np.uint8).tobytes()) for row in told]

    def from_chief(self, make: Callable[[], Any]) -> Any:
        """Return a small JSON value that the chief alone works out; all workers must call it."""
        return self.everyone(make() if self.chief else None)[0]

    def _gathered(self, message: tf.Tensor) -> tf.Tensor:
        def replica() -> tf.Tensor:
            # As floats, which every kind of device can pass on.
            return tf.distribute.get_replica_context().all_gather(message[None], axis=0)

        return self.strategy.experimental_local_results(self.strategy.run(replica))[0][:: len(self.members)]

    @contextmanager
    def chief_first(self) -> Iterator[None]:
        """Let the chief do the block before the others: what it left in a shared cache is then there for them."""
        if not self.chief:
            self.everyone(None)
        yield
        if self.chief:
            self.everyone(None)

    def require_same(self, values: Mapping[str, str]) -> None:
        """Check that all workers do the same.

        Raises:
            DataError: a worker has another value of something.
        """
        told = self.everyone(dict(values))
        for name, value in told[0].items():
            for index, other in enumerate(told):
                if other[name] != value:
                    raise DataError(
                        f"worker {index} ({self.workers[index]}) has another {name} than worker 0: {other[name]} and "
                        f"{value}; start all workers with the same command, configuration and text"
                    )

    def clock(self, seconds: float) -> float:
        """Return the chief's seconds, by which all workers decide what is due, once all have taken a step.

        Raises:
            KeyboardInterrupt: a worker was asked to stop; all stop behind the same step.
        """
        told = self.everyone([seconds, self._asked])
        if any(asked for _, asked in told):
            raise KeyboardInterrupt
        return told[0][0]

    @contextmanager
    def stopping_together(self) -> Iterator[None]:
        """Hold back SIGINT and SIGTERM until `clock`: a worker that stopped alone would leave the others waiting.

        A second signal is not held back.
        """
        if not self.workers or threading.current_thread() is not threading.main_thread():
            yield
            return
        previous: dict[int, Any] = {}

        def ask(signum: int, frame: FrameType | None) -> None:
            if self._asked is not None:
                previous[signum](signum, frame)
            self._asked = signum

        for number in (signal.SIGINT, signal.SIGTERM):
            if callable(signal.getsignal(number)):
                previous[number] = signal.signal(number, ask)
        try:
            yield
        except KeyboardInterrupt:
            if self._asked in previous:  # the run is told which signal it was
                previous[self._asked](self._asked, None)
            raise
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextmanager
    def watching(self, place: Callable[[], str]) -> Iterator[None]:
        """Turn the loss of a worker into one line.

        Args:
            place: says where the work stands and what to do.

        Raises:
            WorkerLostError: a worker has gone.
        """
        try:
            yield
        except _LOST as error:
            if not self.workers:
                raise
            raise WorkerLostError(f"{self._who(str(error))}; {place()}") from None

    def _who(self, message: str) -> str:
        for found in re.findall(r"/job:worker/(?:replica:\d+/)?task:(\d+)", message):
            if int(found) != self.index:
                return f"worker {self.index} has lost worker {found} ({self.workers[int(found)]})"
        return f"worker {self.index} has lost another worker"


ALONE = Replicas()


class Joined:
    """A variable that each replica sets for itself, as one array of all replicas: what a checkpoint holds.

    Attributes:
        shape: of the joined array.
        dtype: of its values.
    """

    def __init__(self, replicas: Replicas, variable: tf.Variable, axis: int) -> None:
        self._replicas, self._variable, self._axis = replicas, variable, axis
        shape = variable.shape.as_list()
        self._size = shape[axis]
        shape[axis] *= replicas.count
        self.shape, self.dtype = tf.TensorShape(shape), variable.dtype

    def numpy(self) -> np.ndarray:
        """Return the values of all replicas; all workers must call it."""
        return tf.cast(self._gathered(), self.dtype).numpy()

    @tf.function
    def _gathered(self) -> tf.Tensor:
        def replica() -> tf.Tensor:
            value = tf.cast(tf.identity(self._variable), tf.float32)
            return tf.distribute.get_replica_context().all_gather(value, axis=self._axis)

        strategy = self._replicas.strategy
        return strategy.experimental_local_results(strategy.run(replica))[0]

    def assign(self, value: np.ndarray) -> None:
        """Give each replica of this process its part."""
        for place, part in enumerate(self._replicas.strategy.experimental_local_results(self._variable)):
            start = (self._replicas.members.start + place) * self._size
            part.assign(np.take(value, range(start, start + self._size), self._axis))


def choose() -> Replicas:
    """Return the replicas by the surroundings.

    The workers of TF_CONFIG train together (MultiWorkerMirroredStrategy); else the GPUs of this machine
    (MirroredStrategy); one GPU, or none, needs no strategy.

    Raises:
        UsageError: TF_CONFIG is wrong, or its address cannot be listened to.
    """
    cluster = cluster_from(os.environ)
    logging.getLogger("tensorflow").setLevel(logging.WARNING)  # it tells each collective that it builds
    if cluster is None:
        several = len(tf.config.list_physical_devices("GPU")) > 1
        return Replicas(tf.distribute.MirroredStrategy()) if several else ALONE
    if cluster.index:
        logging.getLogger("toolkit").setLevel(logging.WARNING)  # the chief tells it all
    logger.info("worker 0 of %d: waiting for %s", len(cluster.workers), ", ".join(cluster.workers[1:]))
    try:
        return Replicas(tf.distribute.MultiWorkerMirroredStrategy(), cluster)
    except tf.errors.UnknownError:
        raise UsageError(
            f"worker {cluster.index} cannot listen to {cluster.workers[cluster.index]} (TF_CONFIG): is the port taken?"
        ) from None
    except _LOST as error:
        raise WorkerLostError(
            f"the workers {', '.join(cluster.workers)} did not come together: {error.message.splitlines()[0]}"
        ) from None


def refuse_cluster(command: str) -> None:
    """Stop a command that trains in one process, before several workers each do the same.

    Raises:
        UsageError: TF_CONFIG names several workers, or is wrong.
    """
    if cluster := cluster_from(os.environ):
        raise UsageError(f"{command} trains in one process, TF_CONFIG names {len(cluster.workers)} workers: unset it")
