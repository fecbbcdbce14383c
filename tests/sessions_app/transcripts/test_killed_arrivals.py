"""A process that takes in a transcript is killed wherever it may be: nothing is lost, and nothing is taken twice."""

from __future__ import annotations

import pytest
from django_q.models import OrmQ

from memories.models import Stage, Transcript, TranscriptPart
from sessions_app.queue.tasks import OBSERVE
from sessions_app.transcripts.arrivals import see
from tests.support.processes import killed
from tests.support.thorough import one_of
from tests.support.transcripts import says, typed, write

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

SEE = "from sessions_app.transcripts.arrivals import see; see({path!r}, arrived_by='hook', ended=True)"
PLACES = [
    ("call", "sessions_app.transcripts.arrivals", "_store"),
    ("return", "django.db.models.query", "bulk_create"),
    ("return", "django.db.models.query", "update"),
    ("call", "memories.observe.pipeline", "add_part"),
    ("return", "memories.observe.pipeline", "add_part"),
    ("call", "sessions_app.queue.tasks", "send"),
    ("return", "sessions_app.queue.tasks", "send"),
    ("return", "sessions_app.transcripts.arrivals", "_store"),
]


@pytest.mark.parametrize("place", one_of([(place,) for place in PLACES]), ids=lambda place: f"{place[0]} of {place[2]}")
def test_wherever_it_is_killed_the_next_one_takes_it_in_once(place, tmp_path):
    lines = [typed(f"{number} " + "word " * 4_000) for number in range(4)] + [says("I will wait")]
    path = write(tmp_path, *lines)
    killed(SEE.format(path=str(path)), *place, more={"CLAUDEOPS_OBSERVE": "true"})
    for _ in range(2):
        see(path, arrived_by="sweep")
    transcript = Transcript.objects.get()
    parts = list(TranscriptPart.objects.order_by("number").values_list("start", "end"))
    assert [start for start, _ in parts] == [0, *(end for _, end in parts[:-1])]
    assert parts[-1][1] == transcript.observed_to == path.stat().st_size
    assert Stage.objects.count() == 7 * len(parts)
    asked = [row.task["func"] for row in OrmQ.objects.all()]
    assert asked == [OBSERVE]
