"""Complete lines of a file that grows."""

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.runner import raw_log
from sessions_app.runner.raw_log import complete_lines


def lines(path, offset=0, **options):
    return [(line.start, line.end, line.data) for line in complete_lines(path, offset, **options)]


def test_a_missing_file_has_no_lines(tmp_path):
    assert lines(tmp_path / "none") == []


def test_the_last_line_waits_for_its_end_until_the_process_has_ended(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"one\ntw")
    assert lines(log) == [(0, 4, b"one\n")]
    assert lines(log, 4) == []
    assert lines(log, 4, final=True) == [(4, 6, b"tw")]
    with log.open("ab") as file:
        file.write(b"o\n")
    assert lines(log, 4) == [(4, 8, b"two\n")]


def test_a_line_that_is_too_long_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(raw_log, "MAX_LINE", 8)
    log = tmp_path / "log"
    log.write_bytes(b"x" * 20 + b"\nok\n" + b"y" * 9)
    assert lines(log) == [(0, 21, None), (21, 24, b"ok\n")]
    assert lines(log, 24) == []
    assert lines(log, 24, final=True) == [(24, 33, None)]


@given(st.lists(st.binary(max_size=30).filter(lambda b: b"\n" not in b), max_size=8), st.data())
def test_reading_in_two_goes_is_reading_in_one(tmp_path_factory, parts, data):
    log = tmp_path_factory.mktemp("log") / "log"
    whole = b"\n".join(parts)
    log.write_bytes(whole)
    everything = lines(log, final=True)
    assert b"".join(line for _, _, line in everything) == whole
    cut = data.draw(st.integers(0, len(whole)))
    log.write_bytes(whole[:cut])
    first = lines(log)
    offset = first[-1][1] if first else 0
    log.write_bytes(whole)
    assert first + lines(log, offset, final=True) == everything
