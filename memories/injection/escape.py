"""Escape text from memories and sessions for a prompt: it keeps its words and loses every structure. Pure.

The block's own structure is a heading, `### service` and `- [category] text (confidence: 0.9)`. A text cannot imitate
it, nor open a heading, fence, tag or marker, nor speak as another role. Escaping twice changes nothing more.
"""

from __future__ import annotations

import re

from memories.capture.lines import LINE_BREAK
from memories.capture.text import fold
from memories.taxonomy import TAXONOMIES

FENCE = re.compile(r"`{3,}|~{3,}")
TAG = re.compile(r"<([/!?|A-Za-z][^<>]*)(>?)")
MARKER = re.compile(r"\[(?=(?:MEMORY|EVENT|COOLDOWN):)", re.IGNORECASE)
# A single # within a line is a comment in a shell, and no heading.
HEADING = re.compile(r"^(?=#{1,6}(?:\s|$))|(?<![\\#])(?=#{2,6}(?:\s|$))")
OPENING = re.compile(r"^(?=#{1,6}(?:\s|$))")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# Within lists and quotations, in texts of several lines.
NESTED_HEADING = re.compile(r"^((?:(?:>|[-*+]|\d{1,9}[.)])\s?)+)(?=#{1,6}(?:\s|$))")
UNDERLINE = re.compile(r"^(?=[->*+=_\d.)\s]*[-=]$)")
CATEGORY = re.compile(
    rf"([\[［]\s?)({'|'.join(sorted({name for policy in TAXONOMIES.values() for name in policy.categories}))})"
    r"(?=\s?(?::[\w.-]{1,64})?\s?[\]］])",
    re.IGNORECASE,
)
CONFIDENCE = re.compile(r"([(（]\s?)(confidence)(?=\s?[:：=])", re.IGNORECASE)
# Words with which a transcript opens another's turn, in the languages that models know best.
_ROLES = (
    r"system|assistant|human|user|developer|tool|operator|claude|ai|système|humain|utilisateur|mensch|benutzer|assistent|"
    r"sistema|asistente|assistente|usuario|usuário|utente|humano|umano|система|ассистент|пользователь|человек|"
    r"系统|系統|助手|用户|用戶|人类|システム|アシスタント|ユーザー|人間|시스템|어시스턴트|사용자|النظام|المساعد|المستخدم|سیستم|دستیار|کاربر"
)
ROLE = re.compile(rf"((?:^|[.!?。！？)\]}}]\s{{0,3}})[^\w\s\"]{{0,4}}\s?)({_ROLES})(?=\s?[:：])", re.IGNORECASE)
SPEAKER = re.compile(r"(?<![\w\"])(Human|Assistant|System)(?=[:：])")


def safe(text: str) -> str:
    """Return `text` as one line of plain text.

    Fences are shortened, tags get ‹›, marker brackets (), headings a backslash; role words, categories in brackets and
    "(confidence: …)" get quotation marks.
    """
    text = FENCE.sub(lambda run: run[0][:2], fold(text))
    text = TAG.sub(lambda tag: f"‹{tag[1]}{'›' if tag[2] else ''}", text)
    text = HEADING.sub(r"\\", MARKER.sub("(", text))
    text = CONFIDENCE.sub(r'\1"\2"', CATEGORY.sub(r'\1"\2"', text))
    return SPEAKER.sub(r'"\1"', ROLE.sub(r'\1"\2"', text))


def safe_lines(text: str) -> str:
    """Return a text of several lines, each escaped like `safe`; its line breaks, indents and list bullets stay."""
    return "\n".join(map(_safe_line, LINE_BREAK.split(text)))


def _safe_line(line: str) -> str:
    indent = " " * min(len(line) - len(line.lstrip(" ")), 40)
    return indent + UNDERLINE.sub(r"\\", NESTED_HEADING.sub(r"\1\\", safe(line)))


def plain_lines(text: str) -> str:
    """Return a person's words line by line, which can open no heading and no fence; everything else stays as typed."""
    return "\n".join(map(_plain_line, LINE_BREAK.split(text)))


def _plain_line(line: str) -> str:
    line = FENCE.sub(lambda run: run[0][:2], CONTROL.sub("", line)).rstrip()
    indent = line[: len(line) - len(line.lstrip())]
    rest = line[len(indent) :]
    return indent + UNDERLINE.sub(r"\\", NESTED_HEADING.sub(r"\1\\", OPENING.sub(r"\\", rest)))
