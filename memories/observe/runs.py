"""Find in a text what repeats given passages, by runs of words without letter case and punctuation. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_WORD = re.compile(r"[^\W_]+")


class Runs:
    """The runs of `length` words of some passages. A shorter passage counts as a whole, from `shortest` words on.

    With `telling`, a single word of a passage counts that has a digit and four characters or more, such as a number.
    """

    def __init__(self, passages: Iterable[str], *, length: int, shortest: int, telling: bool = False) -> None:
        self._by_length: dict[int, set[str]] = {}
        for passage in passages:
            words = _WORD.findall(passage.lower())
            size = min(length, len(words))
            if len(words) >= shortest and (size > 1 or (size == 1 and len(words[0]) >= 4)):
                self._add(size, (" ".join(words[at : at + size]) for at in range(len(words) - size + 1)))
            if telling:
                self._add(1, (word for word in words if len(word) >= 4 and any(sign.isdigit() for sign in word)))
        self._begin = {_beginning(run.split(" ", 2)) for runs in self._by_length.values() for run in runs}
        self._lengths = sorted(self._by_length, reverse=True)

    def _add(self, size: int, runs: Iterable[str]) -> None:
        self._by_length.setdefault(size, set()).update(runs)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where runs stand in `text`: (start, end) in order, joined where they touch or overlap."""
        if not self._begin:
            return []
        tokens = [(match[0].lower(), match.start(), match.end()) for match in _WORD.finditer(text)]
        words = [word for word, _, _ in tokens]
        spans: list[tuple[int, int]] = []
        last = -2  # the last word that the last span covers
        for at, word in enumerate(words):
            if word not in self._begin and _beginning(words[at : at + 2]) not in self._begin:
                continue
            for size in self._lengths:
                if at + size <= len(words) and " ".join(words[at : at + size]) in self._by_length[size]:
                    end = at + size - 1
                    if spans and at <= last + 1:
                        if end > last:
                            spans[-1] = (spans[-1][0], tokens[end][2])
                    else:
                        spans.append((tokens[at][1], tokens[end][2]))
                    last = max(last, end)
                    break
        return spans

    def without(
        self, text: str, instead: str, *, keep: Callable[[str, int, int], bool] | None = None
    ) -> tuple[str, int]:
        """Return `text` with `instead` in the place of each span, and how many there were.

        A span (text, start, end) for which `keep` is true stays.
        """
        spans = [span for span in self.spans(text) if keep is None or not keep(text, *span)]
        if not spans:
            return text, 0
        pieces, at = [], 0
        for start, end in spans:
            pieces += [text[at:start], instead]
            at = end
        return "".join([*pieces, text[at:]]), len(spans)


def _beginning(words: list[str]) -> str:
    """Two words: few texts have the first two of a given run."""
    return " ".join(words[:2])
