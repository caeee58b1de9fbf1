"""What a checker finds: kinds of problems, how many of each, a few places, and what to do."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

EXAMPLES = 5  # places that are listed for a kind; all are counted

Severity = Literal["error", "warning"]


@dataclass(frozen=True)
class Kind:
    """A kind of problem: whether training refuses such a file ("error") or not, what it is, and what to do."""

    severity: Severity
    title: str
    advice: str


@dataclass
class Found:
    """How often a kind of problem stands, and where it does first."""

    total: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)


class Problems:
    """Counts problems by kind and keeps the first places of each.

    Args:
        kinds: all kinds by name, in the order of the report.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds = kinds
        self._found = {name: Found() for name in kinds}

    def count(self, kind: str, number: int = 1) -> None:
        """Count `number` more of a kind."""
        self._found[kind].total += number

    def wants(self, kind: str) -> bool:
        """Say whether another place of a kind would be listed."""
        return len(self._found[kind].examples) < EXAMPLES

    def place(self, kind: str, detail: str, **where: Any) -> None:
        """Note a place, unless enough are noted: `detail` says what stands there, `where` is file, line, column."""
        if self.wants(kind):
            self._found[kind].examples.append({**where, "detail": detail})

    def add(self, kind: str, detail: str, **where: Any) -> None:
        """Count one and note its place."""
        self.count(kind)
        self.place(kind, detail, **where)

    def total(self, severity: Severity) -> int:
        """Return the number of problems of a severity."""
        return sum(found.total for name, found in self._found.items() if self._kinds[name].severity == severity)

    def document(self) -> list[dict[str, Any]]:
        """Return kind, severity, title, total, advice and examples of each kind that was found, errors first."""
        rows = [
            {"kind": name, **vars(self._kinds[name]), "total": found.total, "examples": found.examples}
            for name, found in self._found.items()
            if found.total
        ]
        return sorted(rows, key=lambda row: row["severity"])


def totals(document: Mapping[str, Any]) -> str:
    """Return the counts of a checker's document as words: "1 error, 2 warnings"."""
    counts = ((document[f"{severity}s"], severity) for severity in ("error", "warning"))
    return ", ".join(f"{count:,} {severity}{'' if count == 1 else 's'}" for count, severity in counts)


def describe(problems: list[dict[str, Any]]) -> list[str]:
    """Return a document of `Problems` as lines: kind and total, what to do, the places."""
    lines = []
    for problem in problems:
        lines.append(f"{problem['severity']:8}{problem['title']}: {problem['total']:,}; {problem['advice']}")
        lines += [f"{'':10}{_where(example)}: {example['detail']}" for example in problem["examples"]]
        if problem["examples"] and problem["total"] > len(problem["examples"]):
            lines.append(f"{'':10}…")
    return lines


def _where(example: dict[str, Any]) -> str:
    named = [str(example["file"])] if "file" in example else []
    return ", ".join(named + [f"{key} {example[key]:,}" for key in ("line", "column") if key in example])
