"""Penn Treebank tokens turned into Moses tokens, which biLMs read: those that differ, one for one."""

from collections.abc import Sequence

BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}"}
MARKS = BRACKETS | {"``": '"', "''": '"', "`": "'", "\\/": "/", "\\*": "*"}
NOT = "n't"


def moses_tokens(tokens: Sequence[str]) -> list[str]:
    """Return tokens as the Moses tokenizer would have split their text; as many as before, at the same places.

    Task data often comes in Penn Treebank tokens (-LRB-, ``, do n't), while the published models and those of this
    toolkit were trained on Moses tokens ((, ", don 't): without this step they meet tokens that they have never seen.

    Args:
        tokens: of a sentence; Moses tokens come back unchanged.

    Returns:
        a new list.

    Example:
        >>> moses_tokens(["It", "does", "n't", "-LRB-", "yet", "-RRB-", "work"])
        ['It', 'doesn', "'t", '(', 'yet', ')', 'work']
    """
    found = [MARKS.get(token.lower(), token) for token in tokens]
    for place in range(1, len(found)):
        if found[place].lower() == NOT and found[place - 1].isalpha():
            negation = found[place]
            found[place - 1 : place + 1] = found[place - 1] + negation[0], negation[1:]
    return found
