"""What names the encoder that dumps come from."""

import logging

from toolkit.embed.dumpfile import Dump
from toolkit.files import fingerprint, sha256

logger = logging.getLogger(__name__)


def fingerprint_of(*dumps: Dump) -> str:
    """Return what names the encoder of dumps: the model's fingerprint where they say it, else that of their bytes.

    Where a dump of the toolkit keeps one layer or an average, this stands behind the model's fingerprint.
    """
    first = dumps[0]
    model, layers = (first.attributes.get(name) for name in ("model_fingerprint", "layers"))
    if model is None:
        logger.info("%s does not say its model_fingerprint: its bytes stand for it", first.path)
        return fingerprint([sha256(dump.path) for dump in dumps])
    return str(model) if layers in (None, "all") else f"{model}-{layers}"
