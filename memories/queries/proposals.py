"""The filters of proposals, for the API and the command, and which a caller may see."""

from __future__ import annotations

import django_filters
from django.db.models import Q, QuerySet

from memories.access.permissions import Access
from memories.models import Project, Proposal, ProposalKind, ProposalState, Tier, Trust
from memories.taxonomy import KNOWLEDGE

GLOBAL = "global"
"""The value of `project` that means the global file."""


class ProposalFilterSet(django_filters.FilterSet):
    """Query parameters, all optional, combined by AND: state, tier, kind, section, trust, project (slug or global)."""

    state = django_filters.ChoiceFilter(choices=ProposalState.choices, label="State")
    tier = django_filters.ChoiceFilter(choices=Tier.choices, label="Tier: 1 rules, 2 model, 3 person")
    kind = django_filters.ChoiceFilter(choices=ProposalKind.choices, label="Kind")
    section = django_filters.ChoiceFilter(choices=[(name, name) for name in KNOWLEDGE.categories], label="Section")
    trust = django_filters.ChoiceFilter(choices=Trust.choices, label="Trust")
    project = django_filters.ModelChoiceFilter(
        queryset=Project.objects.only("id", "slug"),
        field_name="file__project",
        to_field_name="slug",
        label="Project of the file, or global",
        null_label=GLOBAL,
        null_value=GLOBAL,
    )

    class Meta:
        model = Proposal
        fields: list[str] = []  # each is declared above, so that a new column adds no filter


def visible_proposals(access: Access) -> QuerySet[Proposal]:
    """Filter to what a caller may see: with a project those of its file and of the global one."""
    rows = Proposal.objects.select_related("file__project")
    if not access.confined:
        return rows
    return rows.filter(Q(file__project=None) | Q(file__project=access.project_id))
