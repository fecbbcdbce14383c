"""Schedules of agents: when one fires next, and how it is said in words. Pure; all times are UTC."""

from sessions_app.schedule.firing import cron_error, next_cron, next_interval
from sessions_app.schedule.words import cron_in_words, interval_in_words

__all__ = ["cron_error", "cron_in_words", "interval_in_words", "next_cron", "next_interval"]
