"""What of a session's lines supports a statement, and as whose word: read as the CLI writes them."""

from __future__ import annotations

import pytest

from memories.capture.support import Evidence
from sessions_app.models import PromptReceipt, Trigger
from sessions_app.runner.exposure import rules
from sessions_app.runner.ingest import proof_of
from sessions_app.runner.turns import CLAIMED, NO_PROOF, PASTED, UNPROVED, Proof, Reader, prompt_hash
from tests.sessions_app.runner.test_ingest_exposure import a_session, feed, said  # noqa: F401  # a fixture
from tests.sessions_app.runner.test_reading import answer, call
from tests.support.streams import text, user
from tests.support.transcripts import SESSION, attached, brings, calls, receipt, says, typed, write

BILLING = "The billing service is never restarted between 9 and 11"
SAID = "Never restart the billing service between 9 and 11!"
SHOWN = "billing.service never restarts 9 11"
KEPT = Proof(is_kept=True)


def proved(*prompts: str) -> Proof:
    return Proof(frozenset(map(prompt_hash, prompts)), is_kept=True)


def reader_of(*lines: str, proof: Proof = KEPT, ours: bool = False) -> Reader:
    reader, start = Reader(rules(), ours=ours, proof=proof, evidence=Evidence()), 0
    for line in lines:
        data = line.encode()
        reader.read(data, start, start + len(data))
        start += len(data)
    return reader


def support(*lines: str, proof: Proof = KEPT, ours: bool = False, of: str = BILLING) -> tuple[str, str]:
    """Return who supports a statement, and the source of the best quote."""
    evidence = reader_of(*lines, proof=proof, ours=ours).evidence
    assert evidence is not None
    found = evidence.support(of)
    return found.by.value, found.quotes[0].source if found.quotes else ""


def test_a_prompt_is_a_persons_word_by_its_receipt_and_by_nothing_that_its_line_says(subtests):
    whole = proved(SAID)
    later = {"prompt": SAID, "commandMode": "prompt", "origin": {"kind": "human"}}
    for line, proof, expected in [
        (typed(SAID), whole, ("person", "")),
        (typed(f"\n{SAID}  \n"), whole, ("person", "")),
        (typed([{"type": "text", "text": SAID}]), whole, ("person", "")),
        (typed(SAID, origin=None, promptSource=None), whole, ("person", "")),  # as older versions write it
        (typed(SAID), KEPT, ("outside", UNPROVED)),
        (typed(f"{SAID} And not at night."), whole, ("outside", UNPROVED)),
        (typed(SAID), NO_PROOF, ("outside", CLAIMED)),
        (typed(SAID, promptSource="sdk"), whole, ("outside", UNPROVED)),
        (typed(SAID, turnOrigin="agent"), whole, ("outside", UNPROVED)),
        (attached("queued_command", **later), whole, ("person", "")),
        (attached("queued_command", **later), KEPT, ("outside", UNPROVED)),
        (attached("queued_command", **later), NO_PROOF, ("outside", CLAIMED)),
        # what is no word of a person's whatever was received
        (typed(SAID, isMeta=True), whole, ("nobody", "")),
        (typed(SAID, isSidechain=True), whole, ("nobody", "")),
        (typed(SAID, promptSource="system"), whole, ("nobody", "")),
        (typed(SAID, origin={"kind": "teammate"}), whole, ("nobody", "")),
        (attached("queued_command", prompt=SAID, commandMode="task-notification"), whole, ("outside", "tool: queue")),
        (says(SAID), whole, ("nobody", "")),
    ]:
        with subtests.test(str((line, proof))):
            assert support(line, proof=proof) == expected


def test_what_was_pasted_is_from_outside_and_what_was_typed_beside_it_a_persons():
    pasted = "The nightly backup of the photos starts at 02:30"
    for prompt in (
        f"{SAID}\n<pasted_content id=1>\n{pasted}\n</pasted_content>",
        f'{SAID}\n<pasted_content lines="9">{pasted}',  # it is not closed
    ):
        lines, proof = [typed(prompt)], proved(prompt)
        assert support(*lines, proof=proof) == ("person", "")
        assert support(*lines, proof=proof, of=pasted) == ("outside", PASTED)
        read = reader_of(*lines, proof=proof).reading.read()
        assert (read.exposure, read.sources) == ("outside", (PASTED,))
    inner = f"<pasted_content>x</pasted_content> {SAID} </pasted_content>"
    assert support(typed(inner), proof=proved(inner)) == ("outside", PASTED), "a paste may hold the end of its tag"


def test_the_results_of_tools(subtests):
    prose = "The billing service must never be restarted between 9 and 11 by anybody"
    for tool, given, shown, expected in [
        ("Bash", {"command": "systemctl list-timers"}, SHOWN, ("house", "")),
        ("Bash", {"command": "docker logs web"}, SHOWN, ("outside", "logs: web")),
        ("Bash", {"command": "./check.sh"}, SHOWN, ("house", "")),
        ("Bash", {"command": "./check.sh"}, prose, ("outside", "command: check.sh")),
        ("Read", {"file_path": "/srv/shop/README.md"}, prose, ("outside", "repository: files")),
        ("Read", {"file_path": "/etc/shop.conf"}, prose, ("house", "")),
        ("WebFetch", {"url": "https://example.org"}, SHOWN, ("outside", "web: example.org")),
        ("Write", {"file_path": "/srv/x", "content": SHOWN}, SHOWN, ("nobody", "")),
        ("mcp__claudeops__recall", {"query": "billing"}, SHOWN, ("nobody", "")),  # it tells what is known already
        ("mcp__claudeops__recall", {"query": "billing"}, prose, ("nobody", "")),
        ("mcp__mail__read", {"id": 1}, SHOWN, ("outside", "mcp: mail")),
    ]:
        lines = [calls("a", tool, **given), brings(shown, "a")]
        with subtests.test(str((tool, given, shown))):
            assert support(*lines) == expected
            assert support(*lines, proof=NO_PROOF)[0] in ("outside", "nobody"), "without a receipt nothing is proved"
    assert support(brings(SHOWN, "unknown")) == ("outside", "unknown call")


def test_the_fields_of_a_format_are_names_of_what_is_shown():
    asked = """docker inspect -f '{{.Name}} {{.HostConfig.Privileged}} net={{ .HostConfig.NetworkMode }}' frigate"""
    lines = (calls("1", "Bash", command=asked), brings("/frigate true net=host", "1"))
    known = "frigate is a privileged container on the host network"
    assert support(*lines, of=known) == ("house", "")
    assert (
        support(calls("1", "Bash", command="docker ps"), brings("/frigate true net=host", "1"), of=known)[0] != "house"
    )


def test_what_the_agent_wrote_after_outside_text_is_nobodys_when_it_is_read_back(subtests):
    outside = [calls("a", command="curl https://example.org"), brings("Read this", "a")]
    cat = [calls("c", command="cat /etc/notes"), brings(SHOWN, "c")]
    for tool, given in [
        ("Bash", {"command": f"echo '{SHOWN}' > /etc/notes"}),
        ("Bash", {"command": f"cat > /etc/notes <<'EOF'\n{SHOWN}\nEOF"}),
        ("Bash", {"command": f"ssh nas \"printf '{SHOWN}' | tee /etc/notes\""}),
        ("Bash", {"command": f"git commit -qm '{SHOWN}'"}),
        ("Write", {"file_path": "/etc/notes", "content": SHOWN}),
        ("Edit", {"file_path": "/etc/notes", "old_string": "", "new_string": SHOWN}),
    ]:
        write_it = [calls("b", tool, **given), brings("", "b")]
        with subtests.test(str((tool, given))):
            assert support(*outside, *write_it, *cat)[0] == "nobody"
            assert support(*write_it, *outside, *cat)[0] == "house"
    assert support(*outside, *cat)[0] == "house"


def test_a_task_of_ours_is_a_persons_word_unless_it_comes_from_outside():
    for sources, expected in (((), ("person", "")), (("task text",), ("outside", "task text"))):
        reader = Reader(rules(), ours=True, evidence=Evidence())
        reader.begin(SAID, sources)
        found = reader.evidence.support(BILLING)
        assert (found.by, found.quotes[0].source) == expected
    assert support(user(SAID), ours=True) == ("nobody", ""), "nobody types into it"


def test_what_is_private_is_in_no_quote():
    prompt = "Never restart the <private>swordfish of Anna</private> billing service between 9 and 11!"
    evidence = reader_of(typed(prompt), proof=proved(prompt)).evidence
    assert evidence.support(BILLING).quotes[0].text == "Never restart the [private] billing service between 9 and 11!"
    assert "swordfish" not in repr(evidence)


@pytest.mark.django_db
def test_receipts_prove_the_transcript_that_their_hooks_named(tmp_path):
    path, copy = write(tmp_path, typed(SAID)), write(tmp_path / "copy", typed(SAID))
    assert proof_of(SESSION, path.resolve()) == NO_PROOF
    receipt(path, SAID)
    assert proof_of(SESSION, path.resolve()) == proved(SAID)
    assert proof_of(SESSION, copy.resolve()) == proof_of("", path) == proof_of("another", path) == NO_PROOF
    PromptReceipt.objects.filter(prompt="").update(transcript_path="")
    assert proof_of(SESSION, path.resolve()) == proved(SAID)
    PromptReceipt.objects.filter(prompt="").update(transcript_path=str(path), by_agent=True)
    assert proof_of(SESSION, path.resolve()) == KEPT, "another agent had started it: no person types"


@pytest.mark.django_db
def test_an_imported_log_supports_nothing_but_outside_text(said):  # noqa: F811
    lines = [call("1", "docker ps"), answer("1", SHOWN), text(f"[MEMORY:behavior:billing] {BILLING}")]
    feed(a_session(), *lines)
    feed(a_session(trigger=Trigger.IMPORT, cli_session_id=SESSION), *lines)
    assert [one.support.by.value for one in said] == ["house", "outside"]
    assert (said[1].exposure, said[1].exposed_to) == ("outside", (CLAIMED,))
