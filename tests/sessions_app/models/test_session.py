"""Session: the brief of its task, and how it follows another session."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from sessions_app.models import FollowsAs, InjectionReceipt, Session, Status
from tests.support.credentials import sentences
from tests.support.factories import SessionFactory

pytestmark = pytest.mark.django_db


def test_a_session_has_an_empty_brief_and_follows_none():
    session = Session.objects.create()
    session.refresh_from_db()
    assert (session.brief, session.follows_as, session.prompt_sha256) == ({}, "", "")


def test_a_credential_in_a_brief_is_not_stored():
    secret, sentence = next(iter(sentences().items()))
    session = SessionFactory(brief={"note": sentence})
    session.refresh_from_db()
    assert secret in sentence
    assert secret not in session.brief["note"]


@pytest.mark.parametrize("kind", FollowsAs.values)
def test_a_session_has_one_open_follower_of_a_kind(kind):
    old = SessionFactory()
    SessionFactory(parent=old, follows_as=kind, status=Status.FAILED)
    SessionFactory(parent=old, follows_as=kind, status=Status.QUEUED)
    with pytest.raises(IntegrityError), transaction.atomic():
        SessionFactory(parent=old, follows_as=kind, status=Status.RUNNING)
    assert Session.objects.filter(parent=old).count() == 2


def test_a_receipt_without_project_memories_has_an_empty_part_for_them():
    receipt = InjectionReceipt.objects.create(session=SessionFactory(), sha256="0" * 64, budget=0, tokens=0)
    receipt.refresh_from_db()
    assert receipt.project == {}
