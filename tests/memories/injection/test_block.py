"""The block line by line: `memories.injection.block`. No database."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memories.injection.block import lines_of, shares_of
from memories.injection.budget import Line, choose

services = st.sampled_from([None, "general", "caddy", "jellyfin", "Zed", "a|b", "# x"])
memories = st.lists(st.tuples(services, st.sampled_from("abc"), st.booleans()), max_size=12)


@given(memories, st.integers(0, 400))
def test_each_line_of_a_memory_is_its_own_and_the_shares_are_the_whole(given_memories, budget):
    known = [
        Line(place, service, "timing", f"Fact {place} {text}", 0.9)
        for place, (service, text, _) in enumerate(given_memories)
    ]
    chosen = choose(known, budget, eligible=len(known))
    included = [
        {
            "id": line.memory_id,
            "service": line.service,
            "reason": "relevant to the task: score 0.50" if given_memories[line.memory_id][2] else "by confidence",
        }
        for line in chosen.included
    ]
    lines = lines_of(chosen.text, included)
    assert "\n".join(line.text for line in lines) == chosen.text
    for line in lines:
        assert (line.entry is not None) == line.text.startswith("- ")
        if line.entry:
            assert f"Fact {line.entry['id']} " in line.text
    shares = shares_of(lines, tokens=chosen.tokens, budget=budget)
    assert shares.for_task + shares.by_confidence + shares.headings + shares.free == max(budget, chosen.tokens)
