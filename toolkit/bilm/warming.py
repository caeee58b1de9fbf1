"""What the warm state is made of, and the mark that names it beside a model's fingerprint."""

import hashlib

# Any ordinary sentence serves; neither may ever change, or every warm vector does.
WARMING = "The children walked along the river , and the old bank on the other side was closed for the winter ."
PASSES = 2
# A change of either shows in cards, dumps and `toolkit inspect` as another mark.
WARM_MARK = hashlib.sha256(f"{PASSES} {WARMING}".encode()).hexdigest()[:16]
