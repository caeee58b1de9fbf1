"""Where XLA is used: on a CPU for element-wise pieces, matrix products stay outside it; on a GPU for the whole step."""

from collections.abc import Callable
from pathlib import Path

from toolkit.bilm.backend import tf


def compiled(function: Callable) -> Callable:
    """Compile an element-wise function with XLA.

    XLA fuses element-wise chains into one pass, but on a CPU its matrix products use neither AMX nor bfloat16
    instructions; TensorFlow's own products do. Shapes must be fixed: each new shape compiles again.
    """
    return tf.function(function, jit_compile=True, autograph=False)


def fused(function: Callable) -> Callable:
    """Compile an element-wise function so that its gradient is one compiled function too, which computes it anew.

    Kept are the arguments alone: computing again inside one fused pass costs less than writing and reading what lies
    between. The function takes tensors or variables and returns one tensor.
    """
    forward = compiled(function)

    @compiled
    def backward(arguments: tuple, upstream: tf.Tensor) -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            result = function(*arguments)
        return tape.gradient(result, arguments, upstream)

    @tf.custom_gradient
    def apply(*arguments: tf.Tensor):
        return forward(*arguments), lambda upstream: backward(arguments, upstream)

    return lambda *arguments: apply(*(tf.convert_to_tensor(argument) for argument in arguments))


def logistic(x: tf.Tensor) -> tf.Tensor:
    """Return the sigmoid by way of tanh, which XLA computes in fewer instructions."""
    return 0.5 + 0.5 * tf.tanh(0.5 * x)


def compiles_whole_step() -> bool:
    """Return whether XLA gets a training step whole, products included: on a GPU it multiplies by the same kernels."""
    return bool(tf.config.list_physical_devices("GPU"))


def product_dtype(compute_dtype: str) -> tf.DType:
    """Return the dtype of matrix products: "auto" takes bfloat16 where the hardware multiplies it faster."""
    if compute_dtype != "auto":
        return tf.as_dtype(compute_dtype)
    return tf.bfloat16 if tf.config.list_physical_devices("GPU") or _cpu_multiplies_bfloat16() else tf.float32


def _cpu_multiplies_bfloat16() -> bool:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False  # not Linux: no cheap way to know, and float32 is always right
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "").split()
    return "amx_bf16" in flags or "avx512_bf16" in flags
